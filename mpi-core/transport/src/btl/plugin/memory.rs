//! Access of a plugin's transport to the memory of peers, by the table's functions `expose`, `withdraw` and `access`.
#![allow(unsafe_code)]

use super::port::PluginPort;
use crate::btl::fabric::port::{Memory, Operation};
use crate::btl::{Exposed, GetError, ProcId, Region, Rights, Span};
use portcullis_plugin::btl::abi::{
    Access, FLUSH_MEMORY, MAY_READ, MAY_READ_AND_WRITE, NO_SPACE, READ_MEMORY, SENDING, SENT,
    WRITE_MEMORY,
};
use std::ffi::c_int;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};

/// The maximum length in bytes of a key of exposed memory.
const LONGEST_KEY: usize = 512;

impl Memory for PluginPort {
    unsafe fn register(&self, region: Region, rights: Rights) -> Option<Exposed> {
        let expose = self.table().expose?;
        let rights = match rights {
            Rights::Read => MAY_READ,
            Rights::ReadWrite => MAY_READ_AND_WRITE,
        };
        let memory = with_exposed_provenance_mut(region.address as usize);
        let (mut number, mut key) = (0, vec![0_u8; LONGEST_KEY]);
        // SAFETY: `this` is valid until `drop` calls `free`; the caller guarantees that the memory remains valid until `unregister`, and `key` has the capacity that is passed.
        let len = self.guarded("expose", || unsafe {
            let (bytes, to) = (region.len as usize, key.as_mut_ptr().cast());
            expose(
                self.this,
                memory,
                bytes,
                rights,
                &mut number,
                to,
                LONGEST_KEY,
            )
        });
        if len == 0 || len > LONGEST_KEY {
            return None;
        }
        key.truncate(len);
        Some(Exposed { number, key })
    }

    fn unregister(&self, number: u64) {
        if let Some(withdraw) = self.table().withdraw {
            // SAFETY: `this` is valid until `drop` calls `free`.
            self.guarded("withdraw", || unsafe { withdraw(self.this, number) });
        }
    }

    unsafe fn start(
        &self,
        peer: ProcId,
        operation: Operation<'_>,
        number: u64,
    ) -> Result<bool, GetError> {
        let start = self.table().access.ok_or(GetError::Forbidden)?;
        let access = match operation {
            Operation::Read(span) => of_part(READ_MEMORY, span),
            Operation::Write(span) => of_part(WRITE_MEMORY, span),
            Operation::Flush => Access {
                size: size_of::<Access>(),
                kind: FLUSH_MEMORY,
                reserved: 0,
                key: null(),
                key_bytes: 0,
                offset: 0,
                local: null_mut(),
                bytes: 0,
            },
        };
        // SAFETY: `this` is valid until `drop` calls `free`; the caller reserves the local memory for this access until it has ended.
        let code = self.guarded("access", || unsafe {
            start(self.this, peer, &access, number)
        });
        match code {
            SENT => Ok(true),
            SENDING => Ok(false),
            NO_SPACE => Err(GetError::Busy),
            _ => Err(GetError::Forbidden),
        }
    }
}

fn of_part(kind: c_int, span: Span<'_>) -> Access {
    Access {
        size: size_of::<Access>(),
        kind,
        reserved: 0,
        key: span.key.as_ptr().cast(),
        key_bytes: span.key.len(),
        offset: span.offset,
        local: with_exposed_provenance_mut(span.local.address as usize),
        bytes: span.local.len as usize,
    }
}
