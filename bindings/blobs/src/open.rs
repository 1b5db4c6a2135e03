//! Opens the blob store that a URL names.

use crate::bucket::{Bucket, Protocol, TagKind};
use crate::connection::Connector;
use crate::credentials::{Credential, Credentials, For, Refreshing, aws};
use crate::folder::FolderBlobs;
use crate::options::{BlobOptions, Encryption};
use crate::remote::Remote;
use crate::seen;
use crate::store::{Source, Store};
use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use nacre_host::{BlobStore, Error, Result, is_blob_name};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use object_store::azure::{AzureConfigKey, AzureCredential, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::{ClientOptions, HeaderMap, RetryConfig};
use std::sync::Arc;
use std::time::Duration;

/// Opens the blob store that a URL names: `s3://bucket/prefix`, `gs://bucket/prefix`,
/// `az://container/prefix` or `file:///folder`. Nothing is read or written yet, but that a folder is
/// created.
///
/// Errors: `unsupported` for other URLs, and for options that the store does not have; `io` for a
/// malformed URL and for options that cannot be used.
///
/// ```
/// use nacre_blobs::{BlobOptions, open_blobs};
///
/// let folder = std::env::temp_dir().join(format!("nacre-doc-blobs-{}", std::process::id()));
/// let blobs = open_blobs(&format!("file://{}", folder.display()), &BlobOptions::default())?;
/// # drop(blobs);
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), nacre_host::Error>(())
/// ```
pub fn open_blobs(url: &str, options: &BlobOptions) -> Result<Arc<dyn BlobStore>> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(Error::unsupported(format!("{url:?} is not the URL of a blob store"))
            .with_hint("write s3://bucket/prefix, gs://…, az://… or file:///folder"));
    };
    let source: Box<dyn Source> = match scheme {
        "file" => Box::new(FolderBlobs::at_url(url)?),
        _ => Box::new(remote(url, scheme, rest, options)?),
    };
    let key = options.encryption_key.clone();
    let options = options.clone();
    let elsewhere = Box::new(move |url: &str| open_blobs(url, &options));
    Ok(Arc::new(Store { source, key, elsewhere }))
}

/// A store over the network.
fn remote(url: &str, scheme: &str, rest: &str, options: &BlobOptions) -> Result<Remote> {
    if !matches!(scheme, "s3" | "gs" | "az") {
        return Err(Error::unsupported(format!(
            "{scheme}:// is not a blob store that is supported"
        ))
        .with_hint("write s3://bucket/prefix, gs://…, az://… or file:///folder"));
    }
    let at = Place::of(url, rest)?;
    let setting = Setting {
        options,
        connector: Connector::new(options)?,
        client: client_options(options)?,
        refreshing: match &options.credentials {
            Credentials::Source(source) => Some(Refreshing::new(source.clone())),
            _ => None,
        },
    };
    let (store, endpoint, tags) = match scheme {
        "s3" => s3(&at, &setting)?,
        "gs" => gs(&at, &setting)?,
        _ => az(&at, &setting)?,
    };
    let endpoint = Uri::try_from(&endpoint)
        .map_err(|error| Error::io(format!("the endpoint {endpoint:?} is not a URL: {error}")))?;
    let authority = seen::authority(&endpoint);
    if authority.is_empty() {
        return Err(Error::io(format!("the endpoint {endpoint} has no host")));
    }
    Ok(Remote(Arc::new(Bucket {
        store,
        tags,
        place: url.trim_end_matches('/').to_string(),
        authority,
        prefix: at.prefix,
        retry_for: options.retry_for,
        refreshing: setting.refreshing,
        is_presigned: matches!(options.credentials, Credentials::Presigned(_)),
    })))
}

/// What follows the scheme.
struct Place {
    bucket: String,
    prefix: String,
}

impl Place {
    fn of(url: &str, rest: &str) -> Result<Place> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        if bucket.is_empty() || !bucket.bytes().all(is_plain) {
            return Err(Error::io(format!("{url} has no bucket: {bucket:?} cannot be one")));
        }
        if !prefix.is_empty() && !is_blob_name(prefix) {
            let hint = "use letters, digits, -, _ and ., between slashes, and at most 200 of them";
            return Err(Error::io(format!("{url} has an impossible prefix")).with_hint(hint));
        }
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Place { bucket: bucket.to_string(), prefix })
    }
}

/// What the stores over the network have in common.
struct Setting<'a> {
    options: &'a BlobOptions,
    connector: Connector,
    client: ClientOptions,
    refreshing: Option<Arc<Refreshing>>,
}

type Opened = (Box<dyn Protocol>, String, TagKind);

fn client_options(options: &BlobOptions) -> Result<ClientOptions> {
    let mut headers = HeaderMap::new();
    for (name, value) in &options.headers {
        let bad = || Error::io(format!("the header {name:?} cannot be sent"));
        let name = HeaderName::try_from(name).map_err(|_| bad())?;
        headers.append(name, HeaderValue::try_from(value).map_err(|_| bad())?);
    }
    Ok(ClientOptions::new().with_allow_http(true).with_default_headers(headers))
}

/// This crate repeats requests itself.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, ..RetryConfig::default() }
}

fn unusable(error: &object_store::Error) -> Error {
    Error::io(format!("the blob store cannot be opened: {error}"))
}

fn not_supported(what: &str) -> Error {
    Error::unsupported(format!("{what} is not supported"))
}

fn s3(at: &Place, setting: &Setting<'_>) -> Result<Opened> {
    let options = setting.options;
    let mut builder = match &options.credentials {
        Credentials::Environment => AmazonS3Builder::from_env(),
        Credentials::Anonymous | Credentials::Presigned(_) => {
            AmazonS3Builder::new().with_skip_signature(true)
        }
        Credentials::Fixed(credential) => {
            let Some(key) = aws(credential.clone()) else {
                return Err(not_supported(&format!("{credential:?} as a credential of S3")));
            };
            let builder = AmazonS3Builder::new()
                .with_access_key_id(key.key_id)
                .with_secret_access_key(key.secret_key);
            match key.token {
                Some(token) => builder.with_token(token),
                None => builder,
            }
        }
        Credentials::Source(_) => AmazonS3Builder::new(),
    };
    if let Some(refreshing) = &setting.refreshing {
        builder = builder.with_credentials(For::<AwsCredential>::new(refreshing));
    }
    let from_env = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
    let region = (options.region.clone())
        .or_else(|| from_env(AmazonS3ConfigKey::Region))
        .or_else(|| from_env(AmazonS3ConfigKey::DefaultRegion))
        .unwrap_or_else(|| "us-east-1".into());
    let given = (options.endpoint.clone())
        .or_else(|| from_env(AmazonS3ConfigKey::S3Endpoint))
        .or_else(|| from_env(AmazonS3ConfigKey::Endpoint));
    let is_virtual = options.virtual_host.unwrap_or(given.is_none() && !at.bucket.contains('.'));
    let server = given.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
    let endpoint = match (is_virtual, server.split_once("://")) {
        (true, Some((scheme, host))) => format!("{scheme}://{}.{host}", at.bucket),
        _ => server.clone(),
    };
    builder = match &options.encryption {
        Encryption::Default => builder,
        Encryption::Managed => {
            let key = "aws_server_side_encryption".parse().map_err(|e| unusable(&e))?;
            builder.with_config(key, "AES256")
        }
        Encryption::Kms(key) => builder.with_sse_kms_encryption(key),
        Encryption::Customer(key) => builder.with_ssec_encryption(key),
    };
    let store = builder
        .with_bucket_name(&at.bucket)
        .with_region(region)
        .with_config(AmazonS3ConfigKey::S3Endpoint, &endpoint)
        .with_virtual_hosted_style_request(is_virtual)
        // One request for one removal, as every server has it.
        .with_disable_bulk_delete(true)
        .with_client_options(setting.client.clone())
        .with_retry(no_retries())
        .with_http_connector(setting.connector.clone())
        .build()
        .map_err(|error| unusable(&error))?;
    Ok((Box::new(store), endpoint, TagKind::ETag))
}

fn gs(at: &Place, setting: &Setting<'_>) -> Result<Opened> {
    let options = setting.options;
    let mut builder = match &options.credentials {
        Credentials::Environment => GoogleCloudStorageBuilder::from_env(),
        Credentials::Anonymous | Credentials::Presigned(_) => {
            GoogleCloudStorageBuilder::new().with_skip_signature(true)
        }
        Credentials::Fixed(Credential::Token(token)) => {
            GoogleCloudStorageBuilder::new().with_bearer_token(token)
        }
        Credentials::Fixed(Credential::ServiceAccount(json)) => {
            GoogleCloudStorageBuilder::new().with_service_account_key(json)
        }
        Credentials::Fixed(other) => {
            return Err(not_supported(&format!("{other:?} as a credential of Google Cloud"))
                .with_hint(
                    "HMAC keys work with s3:// and its endpoint https://storage.googleapis.com",
                ));
        }
        Credentials::Source(_) => GoogleCloudStorageBuilder::new(),
    };
    if let Some(refreshing) = &setting.refreshing {
        builder = builder.with_credentials(For::<GcpCredential>::new(refreshing));
    }
    if options.encryption != Encryption::Default {
        return Err(not_supported("an encryption other than the bucket's with gs://"));
    }
    let endpoint =
        options.endpoint.clone().unwrap_or_else(|| "https://storage.googleapis.com".into());
    let store = builder
        .with_bucket_name(&at.bucket)
        .with_base_url(&endpoint)
        .with_client_options(setting.client.clone())
        .with_retry(no_retries())
        .with_http_connector(setting.connector.clone())
        .build()
        .map_err(|error| unusable(&error))?;
    Ok((Box::new(store), endpoint, TagKind::Generation))
}

fn az(at: &Place, setting: &Setting<'_>) -> Result<Opened> {
    let options = setting.options;
    let mut builder = match &options.credentials {
        Credentials::Environment => MicrosoftAzureBuilder::from_env(),
        Credentials::Anonymous | Credentials::Presigned(_) => {
            MicrosoftAzureBuilder::new().with_skip_signature(true)
        }
        Credentials::Fixed(Credential::Key { id, secret, .. }) => {
            MicrosoftAzureBuilder::new().with_account(id).with_access_key(secret)
        }
        Credentials::Fixed(Credential::Token(token)) => {
            MicrosoftAzureBuilder::new().with_bearer_token_authorization(token)
        }
        Credentials::Fixed(Credential::SharedSignature(query)) => {
            let pairs = url::form_urlencoded::parse(query.trim_start_matches('?').as_bytes());
            let pairs: Vec<(String, String)> = pairs.into_owned().collect();
            MicrosoftAzureBuilder::new().with_sas_authorization(pairs)
        }
        Credentials::Fixed(other) => {
            return Err(not_supported(&format!("{other:?} as a credential of Azure")));
        }
        Credentials::Source(_) => MicrosoftAzureBuilder::new(),
    };
    if let Some(refreshing) = &setting.refreshing {
        builder = builder.with_credentials(For::<AzureCredential>::new(refreshing));
    }
    if let Some(account) = &options.account {
        builder = builder.with_account(account);
    }
    builder = match &options.encryption {
        Encryption::Default => builder,
        Encryption::Customer(key) => builder.with_encryption_key(key),
        _ => return Err(not_supported("an encryption other than the container's with az://")),
    };
    let Some(account) = builder.get_config_value(&AzureConfigKey::AccountName) else {
        return Err(Error::io("the storage account of az:// is not known")
            .with_hint("set the option account, or AZURE_STORAGE_ACCOUNT_NAME"));
    };
    let endpoint = (options.endpoint.clone())
        .or_else(|| builder.get_config_value(&AzureConfigKey::Endpoint))
        .unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
    let store = builder
        .with_container_name(&at.bucket)
        .with_endpoint(endpoint.clone())
        .with_allow_http(true)
        .with_client_options(setting.client.clone())
        .with_retry(no_retries())
        .with_http_connector(setting.connector.clone())
        .build()
        .map_err(|error| unusable(&error))?;
    Ok((Box::new(store), endpoint, TagKind::ETag))
}

#[cfg(test)]
mod tests {
    use super::{Place, open_blobs};
    use crate::{BlobOptions, Credential, Credentials, Encryption};
    use nacre_host::ErrorKind;

    fn key() -> Credentials {
        let (id, secret) = ("id".to_string(), "c2VjcmV0".to_string());
        Credentials::Fixed(Credential::Key { id, secret, session_token: None })
    }

    fn options(credentials: Credentials) -> BlobOptions {
        BlobOptions { credentials, ..BlobOptions::default() }
    }

    fn refused(url: &str, options: &BlobOptions) -> (ErrorKind, String) {
        match open_blobs(url, options) {
            Ok(_) => panic!("{url} must be refused"),
            Err(error) => (error.kind(), error.to_string()),
        }
    }

    #[test]
    fn urls_name_a_bucket_and_a_prefix() {
        for (rest, bucket, prefix) in [
            ("b", "b", ""),
            ("b/", "b", ""),
            ("b_1.x/shop", "b_1.x", "shop/"),
            ("b/shop/eu/", "b", "shop/eu/"),
        ] {
            let at = Place::of("", rest).unwrap();
            assert_eq!((&*at.bucket, &*at.prefix), (bucket, prefix), "{rest}");
        }
        for url in ["s3://", "s3:///p", "s3://b?x", "s3://b/p//q", "s3://b/../x", "s3://u:p@b/x"] {
            assert_eq!(refused(url, &options(key())).0, ErrorKind::Io, "{url}");
        }
    }

    #[test]
    fn other_urls_are_unsupported() {
        for url in ["", "bucket", "ftp://b/p", "http://b/p", "memory://"] {
            assert_eq!(refused(url, &options(key())).0, ErrorKind::Unsupported, "{url}");
        }
        assert_eq!(refused("file://host/x", &options(key())).0, ErrorKind::Io);
    }

    #[test]
    fn every_scheme_opens_with_its_credentials() {
        let token = || Credentials::Fixed(Credential::Token("t".into()));
        let signature = || Credentials::Fixed(Credential::SharedSignature("?sig=x&se=y".into()));
        for (url, credentials) in [
            ("s3://b/p", key()),
            ("s3://b/p", Credentials::Anonymous),
            ("gs://b/p", token()),
            ("gs://b/p", Credentials::Anonymous),
            ("az://b/p", key()),
        ] {
            open_blobs(url, &options(credentials)).unwrap_or_else(|e| panic!("{url}: {e}"));
        }
        for credentials in [token(), signature()] {
            let account = Some("account".to_string());
            open_blobs("az://b/p", &BlobOptions { account, ..options(credentials) }).unwrap();
        }
        for (url, credentials) in [("s3://b", token()), ("gs://b", key()), ("gs://b", signature())]
        {
            assert_eq!(refused(url, &options(credentials)).0, ErrorKind::Unsupported, "{url}");
        }
        let (kind, text) = refused("az://b/p", &options(token()));
        assert_eq!(kind, ErrorKind::Io, "{text}");
    }

    #[test]
    fn options_that_a_store_cannot_keep_are_refused() {
        for (url, encryption) in
            [("gs://b", Encryption::Managed), ("az://b", Encryption::Kms("k".into()))]
        {
            let token = Credentials::Fixed(Credential::Token("t".into()));
            let account = Some("account".to_string());
            let options = BlobOptions { encryption, account, ..options(token) };
            assert_eq!(refused(url, &options).0, ErrorKind::Unsupported, "{url}");
        }
        let endpoint = Some("not a URL".to_string());
        let (kind, text) = refused("s3://b", &BlobOptions { endpoint, ..options(key()) });
        assert!(kind == ErrorKind::Io && text.contains("not a URL"), "{text}");
        let headers = vec![("a b".to_string(), "c".to_string())];
        let (kind, text) = refused("s3://b", &BlobOptions { headers, ..options(key()) });
        assert!(kind == ErrorKind::Io && text.contains("a b"), "{text}");
    }

    #[test]
    fn secrets_are_not_shown() {
        let key = Credential::Key {
            id: "name".into(),
            secret: "hidden".into(),
            session_token: Some("hidden".into()),
        };
        let encryption = Encryption::Customer("hidden".into());
        let options = BlobOptions { encryption, ..options(Credentials::Fixed(key)) };
        let shown = format!("{options:?}");
        assert!(shown.contains("name") && !shown.contains("hidden"), "{shown}");
        for credential in [
            Credential::Token("hidden".into()),
            Credential::SharedSignature("hidden".into()),
            Credential::ServiceAccount("hidden".into()),
        ] {
            assert!(!format!("{credential:?}").contains("hidden"));
        }
    }
}
