//! The parser of the text that names a port: `name[:place][,key=value]...`.

use super::PortError;

/// The parsed text of a port. Each port reads the keys that it supports and then calls [`finish`](Self::finish).
#[derive(Debug)]
pub(crate) struct Spec<'a> {
    pub text: &'a str,
    syntax: &'static str,
    place: Option<&'a str>,
    options: Vec<(&'a str, &'a str)>,
}

/// A line of a port as named in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineName<'a> {
    pub name: &'a str,
    /// True if the wiring inverts the line.
    pub inverted: bool,
}

impl<'a> LineName<'a> {
    fn of(text: &'a str) -> Self {
        let plain = text.strip_prefix('!');
        Self {
            name: plain.unwrap_or(text).trim(),
            inverted: plain.is_some(),
        }
    }
}

impl<'a> Spec<'a> {
    pub fn parse(text: &'a str, syntax: &'static str) -> Result<Self, PortError> {
        let mut spec = Self {
            text,
            syntax,
            place: None,
            options: Vec::new(),
        };
        let Some((_, rest)) = text.split_once(':') else {
            return Ok(spec);
        };
        for (position, part) in rest.split(',').map(str::trim).enumerate() {
            match part.split_once('=') {
                Some((key, _)) if spec.option(key.trim()).is_some() => {
                    return Err(spec.wrong(format!("{} is given twice", key.trim())));
                }
                Some((key, value)) => spec.options.push((key.trim(), value.trim())),
                None if position == 0 && !part.is_empty() => spec.place = Some(part),
                None => return Err(spec.wrong(format!("\"{part}\" is not key=value"))),
            }
        }
        Ok(spec)
    }

    /// Returns an error about this text, for the reason `why`.
    pub fn wrong(&self, why: impl Into<String>) -> PortError {
        PortError::Text {
            text: self.text.into(),
            why: why.into(),
            syntax: self.syntax,
        }
    }

    /// Returns the place, for ports that require one, which `what` describes.
    pub fn place(&self, what: &str) -> Result<&'a str, PortError> {
        self.place
            .ok_or_else(|| self.wrong(format!("it does not give {what}")))
    }

    /// Rejects a place, for ports of which a machine has only one.
    #[cfg_attr(not(feature = "rppal"), allow(dead_code))]
    pub fn no_place(&self) -> Result<(), PortError> {
        self.place.map_or(Ok(()), |place| {
            Err(self.wrong(format!("\"{place}\" is not key=value")))
        })
    }

    /// Returns the single line that a key names.
    pub fn line(&self, key: &str) -> Result<LineName<'a>, PortError> {
        let value = self
            .option(key)
            .ok_or_else(|| self.wrong(format!("{key}= is missing")))?;
        Ok(LineName::of(value))
    }

    /// The `count` lines of a key, separated by `+`, or the defaults if the key is missing.
    pub fn lines(
        &self,
        key: &str,
        count: usize,
        usual: Option<&[&'static str]>,
    ) -> Result<Vec<LineName<'a>>, PortError> {
        let lines: Vec<_> = match (self.option(key), usual) {
            (Some(value), _) => value
                .split('+')
                .map(|name| LineName::of(name.trim()))
                .collect(),
            (None, Some(usual)) => usual.iter().map(|name| LineName::of(name)).collect(),
            (None, None) => return Err(self.wrong(format!("{key}= is missing"))),
        };
        if lines.len() != count {
            let named = lines.len();
            return Err(self.wrong(format!(
                "{key}= names {named} lines, and {count} are wanted"
            )));
        }
        Ok(lines)
    }

    /// Parses a line's name as a number.
    #[cfg_attr(not(any(feature = "gpio", feature = "rppal")), allow(dead_code))]
    pub fn number<N: core::str::FromStr>(
        &self,
        key: &str,
        line: LineName<'_>,
    ) -> Result<(N, bool), PortError> {
        let LineName { name, inverted } = line;
        let number = name
            .parse()
            .map_err(|_| self.wrong(format!("{key}={name} is not the number of a line")))?;
        Ok((number, inverted))
    }

    /// Returns the numeric value of a key; `None` if the key is missing.
    pub fn value(&self, key: &str) -> Result<Option<u32>, PortError> {
        let value = self.option(key).map(|value| {
            let number = value.parse();
            number.map_err(|_| self.wrong(format!("{key}={value} is not a number")))
        });
        value.transpose()
    }

    /// Returns the text value of a key; `None` if the key is missing.
    pub fn text_of(&self, key: &str) -> Option<&'a str> {
        self.option(key)
    }

    /// Rejects keys that the port does not know, which are probably misspelt.
    pub fn finish(&self, known: &[&str]) -> Result<(), PortError> {
        match self.options.iter().find(|(key, _)| !known.contains(key)) {
            Some((key, _)) => Err(self.wrong(format!("it has no key \"{key}\""))),
            None => Ok(()),
        }
    }

    fn option(&self, key: &str) -> Option<&'a str> {
        let same = |&&(known, _): &&(&str, &str)| known == key;
        self.options.iter().find(same).map(|&(_, value)| value)
    }
}
