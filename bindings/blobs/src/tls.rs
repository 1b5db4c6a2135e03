//! TLS, with the system's certificates.

use nacre_host::{Error, Result};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// Makes a configuration that trusts the system's authorities and these, in PEM. It may trust none:
/// plain HTTP needs none.
///
/// Errors: `io` if what is given is not PEM.
pub(crate) fn config(authorities: Option<&[u8]>) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let given = authorities.map(CertificateDer::pem_slice_iter).into_iter().flatten();
    let refused = |error: &dyn std::fmt::Display| {
        Error::io(format!("the certificates that were given cannot be used: {error}"))
    };
    let before = roots.len();
    for certificate in given {
        let certificate = certificate.map_err(|error| refused(&error))?;
        roots.add(certificate).map_err(|error| refused(&error))?;
    }
    if authorities.is_some() && roots.len() == before {
        return Err(refused(&"there is none in the text"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::io(format!("cannot set up TLS: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::config;
    use nacre_host::ErrorKind;

    #[test]
    fn certificates_that_are_none_are_refused() {
        assert!(config(None).is_ok());
        for text in [&b""[..], b"no certificate", b"-----BEGIN CERTIFICATE-----\nAAAA\n"] {
            let error = config(Some(text)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        }
    }
}
