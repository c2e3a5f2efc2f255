//! File views (MPI 5.0, section 14.3): displacement, etype, filetype and data representation.
//!
//! The data bytes of a view form a stream, and offsets count etypes of the stream.
//! Copies of the filetype follow each other from the displacement on, one extent apart.
//! The runs (contiguous ranges) of these copies determine the file offset of each stream byte.
//! For a representation other than `native`,
//! [`View`] uses the filetype with the file sizes of basic types.

use super::conversion::Representation;
use super::error::{IoClass, IoError};
use crate::datatype::{Datatype, Named, Run};

#[derive(Clone, Debug)]
pub struct View {
    pub disp: i64,
    pub etype: Datatype,
    pub filetype: Datatype,
    pub representation: Representation,
    /// The size in the file of an etype, in bytes.
    each: i64,
    /// The filetype with the sizes that basic types have in the file's representation.
    tile: Datatype,
    /// True if the stream is contiguous in the file.
    dense: bool,
}

impl View {
    /// Returns the view of a newly opened file: the file as a stream of bytes.
    pub fn of_bytes() -> View {
        View {
            disp: 0,
            etype: Named::BYTE.into(),
            filetype: Named::BYTE.into(),
            representation: Representation::Native,
            each: 1,
            tile: Named::BYTE.into(),
            dense: true,
        }
    }

    /// Creates a view and checks its arguments.
    /// Runs of the filetype must not overlap if the file is open for writing.
    pub fn new(
        disp: i64,
        etype: &Datatype,
        filetype: &Datatype,
        representation: Representation,
        writes: bool,
    ) -> Result<View, IoError> {
        let wrong = |class, sentence: String| Err(IoError::new(class, sentence));
        if disp < 0 {
            return wrong(IoClass::Arg, format!("disp is {disp}, which is negative"));
        }
        for (name, datatype) in [("etype", etype), ("filetype", filetype)] {
            if !datatype.is_committed() {
                return wrong(IoClass::Type, format!("{name} has not been committed"));
            }
        }
        let (size, bytes) = (etype.size(), filetype.size());
        if size <= 0 || bytes % size != 0 {
            let sentence = format!(
                "filetype has {bytes} bytes of data, which is no multiple of the {size} of etype"
            );
            return wrong(IoClass::Arg, sentence);
        }
        let tile = representation.in_file(filetype)?;
        tile.commit()?;
        if tile.true_lb() < 0 {
            return wrong(IoClass::Io, "filetype has a negative displacement".into());
        }
        let (mut begin, mut end) = (i64::MIN, i64::MIN);
        // All copies of the filetype are equal, so one is checked. A regular filetype has few runs.
        for run in tile.runs(1, 0..tile.size()) {
            if run.offset < begin {
                let sentence = "the displacements of filetype do not grow";
                return wrong(IoClass::Io, sentence.into());
            }
            if writes && run.offset < end {
                let sentence =
                    "pieces of filetype overlap, which only files that are read may have";
                return wrong(IoClass::Io, sentence.into());
            }
            (begin, end) = (run.offset, run.offset + run.len);
        }
        let each = representation.file_bytes(etype, 1)?;
        let bytes = tile.size();
        let dense =
            bytes > 0 && tile.extent() == bytes && tile.contiguous_bytes(2) == Some((0, 2 * bytes));
        Ok(View {
            disp,
            etype: etype.clone(),
            filetype: filetype.clone(),
            representation,
            each,
            tile,
            dense,
        })
    }

    /// Returns the size in the file of an etype, in bytes.
    pub fn etype_bytes(&self) -> i64 {
        self.each
    }

    /// Returns true if the stream is contiguous in the file.
    pub(super) fn is_dense(&self) -> bool {
        self.dense
    }

    /// Returns true if file offsets increase along the stream.
    pub(super) fn goes_forward(&self) -> bool {
        self.dense || self.tile.extent() >= self.tile.true_extent()
    }

    /// Estimates the number of runs in `bytes` bytes of the stream.
    pub(super) fn run_estimate(&self, bytes: i64) -> i64 {
        let tile = self.tile.size();
        if self.dense || tile <= 0 {
            return 1;
        }
        // The estimate uses the mean length of the first runs of the filetype, at most this number.
        const LOOKED_AT: i64 = 64;
        let (mut runs, mut seen) = (0, 0);
        self.runs(0, bytes.min(tile), |run| {
            runs += 1;
            seen += run.len;
            runs < LOOKED_AT
        });
        (bytes / (seen / runs.max(1)).max(1)).max(1)
    }

    /// Calls `each` with the runs of `len` stream bytes from `from` on, in order.
    /// Stops when `each` returns false.
    pub(super) fn runs(&self, from: i64, len: i64, mut each: impl FnMut(Run) -> bool) {
        if len <= 0 {
            return;
        }
        if self.dense {
            each(Run::new(self.disp.saturating_add(from), len));
            return;
        }
        let (tile, extent) = (self.tile.size(), self.tile.extent());
        if tile <= 0 {
            return;
        }
        let before = from / tile;
        let begin = from - before * tile;
        let end = begin + len;
        let base = self.disp + before * extent;
        for run in self.tile.runs((end + tile - 1) / tile, begin..end) {
            if !each(Run::new(base + run.offset, run.len)) {
                return;
            }
        }
    }

    /// Returns the file offset of `len` stream bytes from `from` on if they are one run, else `None`.
    pub(super) fn one_run(&self, from: i64, len: i64) -> Option<i64> {
        let (mut begin, mut end) = (None, 0);
        self.runs(from, len, |run| {
            let goes_on = begin.is_none() || run.offset == end;
            begin = begin.or(Some(run.offset)).filter(|_| goes_on);
            end = run.offset + run.len;
            goes_on
        });
        begin
    }

    /// Returns the file offset of stream byte `at`.
    pub fn byte_offset(&self, at: i64) -> i64 {
        let mut found = self.disp;
        self.runs(at, 1, |run| {
            found = run.offset;
            false
        });
        found
    }

    /// Returns the number of stream bytes before a file offset; 0 for an empty filetype.
    ///
    /// Copies of a filetype with extent 0 are at the same position, so only the first is counted.
    pub fn stream_bytes(&self, file_bytes: i64) -> i64 {
        let behind = file_bytes - self.disp;
        if behind <= 0 {
            return 0;
        }
        if self.dense {
            return behind;
        }
        let (tile, extent) = (self.tile.size(), self.tile.extent());
        if tile <= 0 {
            return 0;
        }
        // `whole` copies of the filetype end before the offset.
        // Further copies may begin before the offset and end after it.
        let reach = self.tile.true_lb() + self.tile.true_extent();
        let (whole, tiles) = match extent {
            1.. => {
                let whole = ((behind - reach).div_euclid(extent) + 1).max(0);
                (whole, behind / extent + 1)
            }
            _ => (0, 1),
        };
        let mut bytes = whole * tile;
        for number in whole..tiles {
            for run in self.tile.runs(1, 0..tile) {
                let at = number * extent + run.offset;
                bytes += (behind - at).clamp(0, run.len);
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a datatype with two of every four ints, starting with the second.
    fn strided() -> Datatype {
        let int: Datatype = Named::INT.into();
        let two = Datatype::hindexed(&[2], &[4], &int).expect("a type");
        let all = Datatype::resized(0, 16, &two).expect("a type");
        all.commit().expect("committed");
        all
    }

    fn runs(view: &View, from: i64, len: i64) -> Vec<(i64, i64)> {
        let mut all = Vec::new();
        view.runs(from, len, |run| {
            all.push((run.offset, run.len));
            true
        });
        all
    }

    #[test]
    fn a_stream_lies_in_the_runs_of_the_copies_of_its_filetype() {
        let view = View::new(
            100,
            &Named::INT.into(),
            &strided(),
            Representation::Native,
            true,
        );
        let view = view.expect("a view");
        assert_eq!(runs(&view, 0, 16), [(104, 8), (120, 8)]);
        assert_eq!(runs(&view, 12, 8), [(124, 4), (136, 4)]);
        assert_eq!(view.byte_offset(8), 120);
        // The same rule applies to offsets far from the start.
        assert_eq!(view.byte_offset(8 << 40), 104 + (16 << 40));
    }

    #[test]
    fn the_bytes_before_an_end_of_file_are_those_of_the_runs_before_it() {
        let view = View::new(
            100,
            &Named::INT.into(),
            &strided(),
            Representation::Native,
            true,
        );
        let view = view.expect("a view");
        for end in 0..200 {
            let mut expected = 0;
            for (at, len) in runs(&view, 0, 800) {
                expected += (end - at).clamp(0, len);
            }
            assert_eq!(view.stream_bytes(end), expected, "{end}");
        }
    }

    #[test]
    fn a_view_has_no_more_bytes_before_an_offset_than_its_filetype_has() {
        let int: Datatype = Named::INT.into();
        let empty = Datatype::contiguous(0, &int).expect("a type");
        let once = Datatype::resized(0, 0, &strided()).expect("a type");
        for (filetype, bytes) in [(empty, 0), (once, 8)] {
            filetype.commit().expect("committed");
            let view = View::new(4, &int, &filetype, Representation::Native, false);
            let view = view.expect("a view");
            for end in [0, 4, 5] {
                assert_eq!(view.stream_bytes(end), 0, "{filetype:?}");
            }
            assert_eq!(view.stream_bytes(1000), bytes, "{filetype:?}");
        }
    }

    #[test]
    fn what_is_no_view_is_refused_with_its_class() {
        let int: Datatype = Named::INT.into();
        let back = Datatype::hindexed(&[1, 1], &[8, 0], &int).expect("a type");
        back.commit().expect("committed");
        let class = |disp, filetype: &Datatype| {
            let view = View::new(disp, &int, filetype, Representation::Native, true);
            view.map(|_| ()).map_err(|error| error.class)
        };
        assert_eq!(class(-1, &int), Err(IoClass::Arg));
        assert_eq!(class(0, &back), Err(IoClass::Io));
        assert_eq!(class(0, &Named::BYTE.into()), Err(IoClass::Arg));
        assert_eq!(class(0, &int), Ok(()));
    }
}
