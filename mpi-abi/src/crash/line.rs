//! A line buffer on the stack, written to standard error without an allocation.

const LONGEST: usize = 512;

/// A line of at most [`LONGEST`] bytes; further bytes are dropped.
pub struct Line {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Line {
    pub fn new() -> Line {
        Line {
            bytes: [0; LONGEST],
            len: 0,
        }
    }

    /// Returns the bytes of the line so far.
    pub fn so_far(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn byte(&mut self, byte: u8) {
        // The last byte is reserved for the newline.
        if self.len < LONGEST - 1 {
            self.bytes[self.len] = byte;
            self.len += 1;
        }
    }

    pub fn text(&mut self, text: &str) -> &mut Line {
        self.bytes(text.as_bytes())
    }

    /// Appends untrusted bytes. Control characters become question marks.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Line {
        for byte in bytes {
            self.byte(match byte {
                0..0x20 | 0x7f.. => b'?',
                plain => *plain,
            });
        }
        self
    }

    pub fn number(&mut self, number: u64) -> &mut Line {
        self.digits(number, 10)
    }

    pub fn hexadecimal(&mut self, number: u64) -> &mut Line {
        self.text("0x").digits(number, 16)
    }

    fn digits(&mut self, mut number: u64, base: u64) -> &mut Line {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b"0123456789abcdef"[(number % base) as usize];
            number /= base;
            if number == 0 {
                return self.bytes(&digits[first..]);
            }
        }
    }

    /// Appends bytes as hexadecimal digits, two per byte.
    pub fn hexadecimal_bytes(&mut self, bytes: &[u8]) -> &mut Line {
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                self.byte(b"0123456789abcdef"[usize::from(digit)]);
            }
        }
        self
    }

    /// Writes the line and clears the buffer.
    pub fn end(&mut self) {
        self.bytes[self.len] = b'\n';
        let _ = rustix::io::write(rustix::stdio::stderr(), &self.bytes[..=self.len]);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_text_and_numbers_and_is_cut_where_it_is_too_long() {
        let mut line = Line::new();
        line.text("#")
            .number(0)
            .text(" ")
            .number(1205)
            .text(" ")
            .hexadecimal(0xfe0);
        line.text(" ")
            .hexadecimal_bytes(&[1, 0xab])
            .bytes(b" a\x1bb");
        assert_eq!(line.so_far(), b"#0 1205 0xfe0 01ab a?b");
        line.text(&"x".repeat(1000));
        assert_eq!(line.so_far().len(), LONGEST - 1);
    }
}
