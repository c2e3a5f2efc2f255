//! Claims of tcp alone.

use super::*;
use crate::btl::suite::Net;
use mpi_base::param::{Params, Source};
use std::collections::HashMap;
use std::sync::Mutex;

/// A noticeboard in memory.
#[derive(Default)]
struct Board(Mutex<HashMap<(ProcId, String), Vec<u8>>>);

struct Corner(Arc<Board>, ProcId);

impl Noticeboard for Corner {
    fn put(&self, key: &str, value: &[u8]) -> Result<(), String> {
        let mut board = self.0.0.lock().unwrap();
        board.insert((self.1, key.into()), value.to_vec());
        Ok(())
    }

    fn get(&self, of: ProcId, key: &str) -> Result<Vec<u8>, String> {
        let board = self.0.0.lock().unwrap();
        board
            .get(&(of, key.into()))
            .cloned()
            .ok_or("it has put nothing".into())
    }
}

fn params(pairs: &[(&str, &str)]) -> Params {
    let mut params = Params::default();
    for (name, value) in pairs {
        params.set(name, value, Source::CommandLine);
    }
    params
}

fn job(size: u32, pairs: &[(&str, &str)]) -> (Arc<Board>, Vec<Tcp>) {
    let board = Arc::new(Board::default());
    let params = params(pairs);
    let all = (0..size)
        .map(|me| {
            let around = Surroundings {
                me,
                size,
                node: None,
                params: &params,
                board: Some(Arc::new(Corner(board.clone(), me))),
            };
            let settings = Settings::read(&params).unwrap();
            Tcp::open(&around, &settings, 0).unwrap()
        })
        .collect();
    (board, all)
}

fn net(pairs: &[(&str, &str)]) -> Net {
    let mut small = vec![
        ("btl_tcp_sndbuf", "64k"),
        ("btl_tcp_rcvbuf", "64k"),
        ("btl_tcp_eager_limit", "4k"),
    ];
    small.extend(pairs);
    let (_, btls) = job(3, &small);
    // The higher rank sends, so that the pair's order is not that of the ranks.
    Net {
        btls: btls
            .into_iter()
            .rev()
            .map(|btl| Box::new(btl) as Transport)
            .collect(),
        procs: vec![2, 1, 0],
        pair: (0, 1),
    }
}

mod over_loopback {
    crate::btl_suite!(|| super::net(&[]));
}

mod with_long_pieces {
    crate::btl_suite!(|| super::net(&[
        ("btl_tcp_max_send_size", "300k"),
        ("btl_tcp_eager_limit", "1k")
    ]));
}
