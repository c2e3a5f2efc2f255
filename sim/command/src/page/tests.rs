//! Tests of the page's guarantees: it is self-contained, well-formed and complete.

use super::*;
use barrier_simulator::faults::campaign::Campaign;
use barrier_simulator::faults::known::KnownUnsafe;
use barrier_simulator::software::Network;
use barrier_simulator::virtual_time::Parameters;
use quick_xml::Reader;
use quick_xml::events::Event as Xml;

fn page() -> String {
    let mut parameters = Parameters::new(5, 40);
    parameters.arrivals = "exponential:5us".parse().expect("a distribution");
    let study = Study::conduct(parameters.clone(), Network::LOGGOPSIM, true);
    let study = study.expect("legal parameters");
    let sweep: Sweep = "nodes=1..9:4".parse().expect("a sweep");
    let studies = sweep.conduct(&parameters, Network::LOGGOPSIM);
    let known = KnownUnsafe::shipped().expect("a list");
    let cases = Campaign::new(3, 1).run(&known, 2).expect("a campaign");
    let mut page = Page::new("A <barrier> & its \"report\"", "with everything in it");
    page.study(&study, 3);
    page.sweep(&sweep, &studies.expect("legal parameters"));
    page.campaign(3, &cases);
    page.finish("hwbarr report", "2005-11-01")
}

/// Returns the page's elements, each with its attributes, in order;
/// fails if the page is not well-formed.
fn elements(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut reader = Reader::from_str(page);
    let (mut elements, mut open) = (Vec::new(), 0);
    loop {
        let element = match reader.read_event().expect("well-formed") {
            Xml::Start(element) => {
                open += 1;
                element
            }
            Xml::Empty(element) => element,
            Xml::End(_) => {
                open -= 1;
                continue;
            }
            Xml::Eof => break,
            _ => continue,
        };
        let attributes = element.attributes().map(|attribute| {
            let attribute = attribute.expect("well-formed");
            (
                attribute.key.as_ref().to_owned(),
                attribute.value.into_owned(),
            )
        });
        let name = element.name().as_ref().to_owned();
        elements.push((name, attributes.collect()));
    }
    assert_eq!(open, 0, "every element is closed");
    elements
}

#[test]
fn a_page_is_well_formed_and_names_nothing_outside_itself() {
    let page = page();
    for (name, attributes) in elements(&page) {
        let allowed = [
            "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "ul", "li",
            "b", "span", "section", "div", "svg", "line", "rect", "circle", "path", "text",
            "table", "tr", "th", "td", "details", "summary", "footer", "code", "script",
        ];
        assert!(allowed.contains(&name.as_str()), "<{name}>");
        for (key, value) in attributes {
            assert!(
                !["href", "src", "srcset", "action", "style"].contains(&key.as_str()),
                "{key}={value}"
            );
            assert!(!key.starts_with("on"), "{key}={value}");
        }
    }
    for outside in [
        "http:", "https:", "//", "url(", "@import", "<link", "NaN", "inf", "fetch", "import",
    ] {
        assert!(!page.contains(outside), "the page contains {outside}");
    }
}

#[test]
fn what_can_be_zoomed_is_the_waveform_change_by_change() {
    let parameters = Parameters {
        boards: 2,
        ..Parameters::new(6, 3)
    };
    let mut trace = barrier_simulator::waves::Trace::of(
        &barrier_simulator::virtual_time::Setup::new(parameters.clone()),
    );
    let run = barrier_simulator::virtual_time::run_observed(&parameters, Vec::new());
    trace.sights = run.expect("legal parameters").1;
    let shown = barrier_simulator::waves::closeup(&trace).expect("a release");
    let mut page = Page::new("zoom", "");
    page.closeup(&shown);
    let text = page.finish("hwbarr report", "2005-11-01");
    elements(&text);
    let data = text.split("<script type=\"application/json\">").nth(1);
    let data = data.and_then(|rest| rest.split("</script>").next());
    let data: serde_json::Value = serde_json::from_str(data.expect("data")).expect("JSON");
    let rows = data["rows"].as_array().expect("rows");
    let wanted: Vec<_> = shown.rows.iter().chain(&shown.others).collect();
    assert_eq!(rows.len(), wanted.len());
    assert_eq!(shown.others.len(), 2 * 5, "five other nodes: {shown:?}");
    for (row, wanted) in rows.iter().zip(wanted) {
        assert_eq!(row[0], wanted.name);
        let mut high = row[1] == 1;
        let mut changes = vec![(Time::ZERO, high)];
        let mut at = 0;
        for step in row[2].as_array().expect("steps") {
            high = !high;
            at += step.as_u64().expect("picoseconds");
            changes.push((Time::from_ps(at), high));
        }
        assert_eq!(changes, wanted.levels, "{}", wanted.name);
    }
    let level = rows.iter().find(|row| row[0] == data["level"]);
    let releases = level.expect("the root's level")[2].as_array().map(Vec::len);
    assert_eq!(releases, Some(3), "one for each barrier");
}

#[test]
fn every_plot_is_there_with_its_words() {
    let page = page();
    let svgs = elements(&page)
        .into_iter()
        .filter(|(name, _)| name == "svg");
    for (_, attributes) in svgs {
        let label = attributes.iter().find(|(key, _)| key == "aria-label");
        assert!(
            label.is_some_and(|(_, words)| words.len() > 10),
            "{attributes:?}"
        );
    }
    for title in [
        "Waveform",
        "Where the time goes",
        "Until all nodes had left",
        "Late nodes",
        "Beside software, loggopsim",
        "Sweep over nodes",
        "Faults",
    ] {
        assert!(page.contains(&format!("<h2>{title}</h2>")), "{title}");
    }
    // The title names the network for which its factor holds.
    assert!(page.contains("than the best software barrier under LogP, network loggopsim<"));
    assert!(page.contains("<title>A &lt;barrier&gt; &amp; its &quot;report&quot;</title>"));
}

#[test]
fn a_page_of_many_nodes_shows_some_of_them_and_says_which() {
    let parameters = Parameters {
        boards: 3,
        ..Parameters::new(180, 4)
    };
    let study = Study::conduct(parameters, Network::LOGGOPSIM, true).expect("legal parameters");
    let mut page = Page::new("many", "");
    page.study(&study, 2);
    let names: Vec<_> = page
        .charts()
        .iter()
        .map(|chart| chart.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "waveform",
            "where-the-time-goes",
            "until-all-nodes-had-left",
            "late-nodes",
            "beside-software-loggopsim"
        ]
    );
    let wave = &page.charts()[0].svg;
    assert_eq!(wave.matches("\">node ").count(), 60);
    assert!(
        wave.contains("\">node 177<") && !wave.contains("\">node 178<"),
        "{wave}"
    );
    for chart in page.charts() {
        elements(&chart.svg);
    }
    let text = page.finish("hwbarr report", "2005-11-01");
    assert!(text.contains("the wire to the barrier of one node in 3"));
}

#[test]
fn the_same_run_makes_the_same_page() {
    assert_eq!(page(), page());
}
