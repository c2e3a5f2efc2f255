//! `hwbarr report`: writes one self-contained HTML page.

use crate::options::{Hardware, Software, at_least_one};
use crate::page::Page;
use crate::run::{cured, edges};
use crate::{Failure, measured};
use barrier_simulator::faults::campaign::Campaign;
use barrier_simulator::faults::known::KnownUnsafe;
use barrier_simulator::study::{Study, Sweep};
use barrier_simulator::virtual_time::{Parameters, Setup, run_observed};
use barrier_simulator::waves::Trace;
use barrier_waveform::words::counted;
use clap::Args;
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Run in virtual time and write one self-contained HTML page: waveforms, latencies, comparison.
#[derive(Args)]
pub struct Report {
    /// Number of nodes, 1 to 64; with --boards, of each leaf board.
    #[arg(short, long, default_value_t = 60)]
    nodes: usize,
    /// Number of barriers.
    #[arg(short = 'k', long, default_value_t = 1000, value_parser = at_least_one)]
    barriers: usize,
    /// File for the page.
    #[arg(short, long, value_name = "FILE", default_value = "barrier.html")]
    output: PathBuf,
    /// Also write each chart as an SVG file into this folder.
    #[arg(long, value_name = "FOLDER")]
    charts: Option<PathBuf>,
    /// Number of barriers in the waveform.
    #[arg(long, value_name = "BARRIERS", default_value_t = 3)]
    show: usize,
    /// Also vary one parameter, as in nodes=2..60:2, port-time=0.5us..5us:0.5us, clock=1,10,100.
    #[arg(long, value_name = "AXIS=VALUES")]
    sweep: Option<Sweep>,
    /// Also run a fault campaign with this number of nodes.
    #[arg(long, value_name = "NODES")]
    faults: Option<usize>,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    software: Software,
}

impl Report {
    pub fn execute(self) -> Result<(), Failure> {
        barrier_waveform::wave_files::check_writable(&self.output)?;
        if let Some(folder) = &self.charts {
            std::fs::create_dir_all(folder).map_err(|e| unwritten(folder, &e))?;
        }
        let parameters = self.hardware.parameters(self.nodes, self.barriers)?;
        let network = self.software.network();
        let study = Study::conduct(parameters.clone(), network, true)?;
        let mut page = Page::new(
            &format!(
                "Hardware barrier: {}, {}",
                counted(parameters.nodes, "node"),
                counted(self.barriers, "barrier")
            ),
            &format!(
                "Arrivals {}, port access {}, cable {} each way, receivers {}, buffers {}, {}, clock {} MHz, seed {}{}.",
                parameters.arrivals,
                parameters.port_read,
                parameters.cable,
                parameters.receivers,
                parameters.fan_out,
                edges(&parameters),
                parameters.clock_hz as f64 / 1e6,
                parameters.seed,
                cured(&parameters).map_or(String::new(), |cures| format!("; {cures}"))
            ),
        );
        page.study(&study, self.show);
        // The arrivals depend only on the seed, so the runs differ only in the software's network.
        for network in self.software.networks().into_iter().skip(1) {
            page.beside(&Study::conduct(parameters.clone(), network, false)?);
        }
        if self.software.measured {
            let here = measured::barrier(parameters.nodes as u64)?;
            let hardware = study.summary.complete.median();
            page.measured(&here.name(), here.mean, hardware);
        }
        // These waveforms exist only for a board of version 1.
        if parameters.channels == 0 {
            let first = Parameters {
                barriers: self.show.clamp(1, self.barriers),
                ..parameters.clone()
            };
            let mut trace = Trace::of(&Setup::new(first.clone()));
            (_, trace.sights) = run_observed(&first, Vec::new())?;
            if let Some(shown) = barrier_simulator::waves::closeup(&trace) {
                page.closeup(&shown);
            }
        }
        if let Some(sweep) = &self.sweep {
            page.sweep(sweep, &sweep.conduct(&parameters, network)?);
        }
        if let Some(nodes) = self.faults {
            let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
            let mut campaign = Campaign::new(nodes * parameters.boards, parameters.seed);
            campaign.cure(&parameters);
            let cases = campaign.run(&KnownUnsafe::shipped()?, threads)?;
            page.campaign(campaign.parameters.nodes, &cases);
        }
        let mut charts = String::new();
        if let Some(folder) = &self.charts {
            for chart in page.charts() {
                let file = folder.join(&chart.name).with_extension("svg");
                std::fs::write(file, &chart.svg).map_err(|e| unwritten(folder, &e))?;
            }
            charts = format!("charts: {} in {}\n", page.charts().len(), folder.display());
        }
        let command: Vec<String> = std::env::args_os()
            .skip(1)
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let text = page.finish(
            &format!("hwbarr {}", command.join(" ")),
            &time::OffsetDateTime::now_utc().date().to_string(),
        );
        std::fs::write(&self.output, &text)
            .map_err(|e| format!("cannot write {}: {e}", self.output.display()))?;
        crate::say(&format!(
            "report: {} ({} kB, readable without network)\n{charts}",
            self.output.display(),
            text.len().div_ceil(1000)
        ))
    }
}

/// Returns the error message for charts that cannot be written to `folder`.
fn unwritten(folder: &Path, e: &std::io::Error) -> String {
    format!("cannot write into {}: {e}", folder.display())
}
