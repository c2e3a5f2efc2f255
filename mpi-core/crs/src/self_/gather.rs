//! Exchange of integers and texts between the ranks while they take a checkpoint.

use mpi_engine::comm::{Comm, U64Buf};
use mpi_types::datatype::Scratch;
use mpi_types::error::Error;

/// Sends an empty message to each other member and receives one from each.
/// Afterwards, all messages that members had sent before this call have arrived.
pub(super) async fn flush(comm: &Comm) -> Result<(), Error> {
    let (me, size) = (comm.rank(), comm.size());
    let conversation = comm.internal().conversation();
    let none = U64Buf::new(2);
    for distance in 1..size {
        let (to, from) = ((me + distance) % size, (me + size - distance) % size);
        let (send, recv) = (none.send(0..1), none.recv(1..2));
        conversation.sendrecv(send, to, recv, from).await?;
    }
    Ok(())
}

/// Returns the values of `word` of all members, in rank order.
pub(super) fn share(comm: &Comm, word: u64) -> Result<Vec<u64>, Error> {
    comm.engine().block_on(comm.internal().share(&[word]))
}

/// Returns the texts of all members at rank 0, and an empty list at other members.
pub(super) fn gather(comm: &Comm, text: &str) -> Result<Vec<String>, Error> {
    let lengths = share(comm, text.len() as u64)?;
    comm.engine().block_on(gather_texts(comm, text, &lengths))
}

async fn gather_texts(comm: &Comm, text: &str, lengths: &[u64]) -> Result<Vec<String>, Error> {
    let conversation = comm.internal().conversation();
    if comm.rank() != 0 {
        let bytes = bytes_of(text)?;
        conversation.send(bytes.send(0..bytes.count()), 0).await?;
        return Ok(Vec::new());
    }
    let mut texts = vec![text.to_owned()];
    for (rank, length) in (0..).zip(lengths).skip(1) {
        let length = i64::try_from(*length).unwrap_or(i64::MAX);
        let bytes = Scratch::bytes(length)?;
        conversation.recv(bytes.recv(0..length), rank).await?;
        let bytes = bytes.send(0..length).to_vec();
        texts.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    Ok(texts)
}

fn bytes_of(text: &str) -> Result<Scratch, Error> {
    let length = text.len() as i64;
    let bytes = Scratch::bytes(length)?;
    bytes.recv(0..length).unpack_at(0, text.as_bytes());
    Ok(bytes)
}
