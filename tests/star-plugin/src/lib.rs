//! A barrier in which rank 0 answers when all ranks have sent it a message.
#![deny(unsafe_code)]

use portcullis_plugin::coll::abi::Param;
use portcullis_plugin::coll::{Comm, Guest, Module, Served, Started, param};
use std::cell::Cell;
use std::ffi::CStr;
use std::task::Poll;

struct Star;

/// The component's module for one communicator.
struct StarModule {
    comm: Comm,
    barriers: Cell<u64>,
}

impl Guest for Star {
    const NAME: &'static CStr = c"star";
    const VERSION: &'static CStr = c"1.1";
    const PRIORITY: i32 = 95;
    const PARAMS: &'static [Param] = &[param(
        c"most",
        c"64",
        c"unsigned_int",
        c"The largest number of ranks that the component serves",
    )];
    type Module = StarModule;

    fn query(comm: Comm) -> Result<StarModule, String> {
        let most = comm.param(c"most").parse().unwrap_or(0);
        if comm.size() > most {
            return Err(format!("more than {most} ranks (coll_star_most)"));
        }
        let barriers = Cell::new(0);
        Ok(StarModule { comm, barriers })
    }
}

impl StarModule {
    fn tell(&self, rank: u32) -> Result<(), String> {
        self.comm.send(rank, &self.barriers.get().to_le_bytes())
    }

    fn receive(&self, rank: u32) -> Result<(), String> {
        let mut number = [0; 8];
        self.comm.recv(rank, &mut number)?;
        let (number, ours) = (u64::from_le_bytes(number), self.barriers.get());
        match number == ours {
            true => Ok(()),
            false => Err(format!(
                "rank {rank} is in barrier {number}, this rank in barrier {ours}"
            )),
        }
    }
}

impl Module for StarModule {
    fn enable(&self) -> Result<(), String> {
        Ok(())
    }

    fn barrier(&self) -> Result<Served, String> {
        self.barriers.set(self.barriers.get() + 1);
        if self.comm.rank() == 0 {
            (1..self.comm.size()).try_for_each(|rank| self.receive(rank))?;
            (1..self.comm.size()).try_for_each(|rank| self.tell(rank))?;
        } else {
            self.tell(0)?;
            self.receive(0)?;
        }
        Ok(Served::Here)
    }

    /// Nonblocking barriers go to the next component.
    fn start(&self) -> Result<Started, String> {
        Ok(Started::Next)
    }

    fn test(&self, _: u64) -> Result<Poll<Served>, String> {
        Err("no barrier was started".into())
    }

    fn disable(&self) {
        if self.comm.rank() == 0 && self.barriers.get() > 0 {
            let line = format!("{} barriers, counted in Rust", self.barriers.get());
            self.comm.warn(&line);
        }
    }
}

portcullis_plugin::portcullis_component!(Star);
