//! The networks that the tests run over.

use super::{Address, End, Options};

pub struct Net {
    pub info: &'static str,
    auto_sm: bool,
    #[cfg(feature = "tls")]
    member: Option<super::super::tls::tests::Member>,
}

impl std::fmt::Display for Net {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tls = self.options().tls_dir.is_some();
        write!(f, "{}{}", self.info, if tls { " with TLS" } else { "" })
    }
}

impl Net {
    pub fn new(info: &'static str) -> Net {
        Net {
            info,
            auto_sm: false,
            #[cfg(feature = "tls")]
            member: None,
        }
    }

    pub fn auto_sm(self) -> Net {
        Net { auto_sm: true, ..self }
    }

    #[cfg(feature = "tls")]
    pub fn tls() -> Net {
        let member = super::super::tls::tests::Authority::new().member();
        Net { member: Some(member), ..Net::new("tcp") }
    }

    pub fn all() -> Vec<Net> {
        vec![
            Net::new("na+sm"),
            Net::new("tcp"),
            #[cfg(feature = "tls")]
            Net::tls(),
        ]
    }

    pub fn options(&self) -> Options<'_> {
        let options = Options::default().auto_sm(self.auto_sm);
        #[cfg(feature = "tls")]
        if let Some(member) = &self.member {
            return options.tls_dir(member.dir());
        }
        options
    }

    pub fn open(&self) -> End {
        End::open(self.info, self.options())
    }

    pub fn pair(&self) -> (End, End, Address) {
        let (a, b) = (self.open(), self.open());
        let there = a.class.lookup(&b.name()).unwrap();
        (a, b, there)
    }
}
