package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"scute.dev/kube"
)

// S3Options are the address of a bucket and the credentials.
type S3Options struct {
	// Endpoint is a URL without a path. http:// requires Insecure.
	Endpoint string
	Bucket   string
	// Region defaults to us-east-1.
	Region   string
	Insecure bool
	// CA are certificate authorities in PEM. If it is empty, the system's are used.
	AccessKeyID, SecretAccessKey, SessionToken string
	CA                                         []byte
	// Dial connects to the endpoint without a proxy. If it is nil, the defaults of net/http apply.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// S3 stores files in a bucket.
type S3 struct {
	client *minio.Client
	bucket string
}

const (
	responseTimeout  = 30 * time.Second
	handshakeTimeout = 15 * time.Second
	// maxObjectBytes limits a response with an object. An index of 100,000 objects has 40 MiB.
	maxObjectBytes = 256 << 20
	// maxPageBytes limits all other responses, because they are decoded to structures of up to 200
	// times their size. A page of a list has pageKeys names of at most 3 KiB each.
	maxPageBytes   = 512 << 10
	pageKeys       = 100
	maxHeaderBytes = 64 << 10
	maxAttempts    = 3
	// partSize is the size of the parts of a large file. At most one part of each file is in
	// memory.
	partSize = 16 << 20
)

// OpenS3 returns a client of a bucket. It sends no request.
func OpenS3(o S3Options) (*S3, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, &Error{Reason: "InvalidEndpoint", Field: FieldEndpoint, Message: "it is not a valid URL", Next: "write it as https://s3.example.com"}
	}
	if u.Scheme == "http" && !o.Insecure {
		return nil, newError(ReasonPlainText, FieldEndpoint, "it does not use TLS: the credentials would be sent in plain text",
			"use https://, or set insecure", nil)
	}
	if o.AccessKeyID == "" || o.SecretAccessKey == "" {
		return nil, &Error{Reason: "InvalidCredentials", Field: FieldCredentials, Message: "accessKeyID or secretAccessKey is empty", Next: "set both"}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: o.Dial, TLSHandshakeTimeout: handshakeTimeout, ResponseHeaderTimeout: responseTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes, MaxIdleConnsPerHost: maxUploads, MaxConnsPerHost: maxUploads, IdleConnTimeout: time.Minute,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if o.Dial != nil {
		transport.Proxy = nil // behind a proxy, Dial could not check the address
	}
	if len(o.CA) > 0 {
		if err := kube.CheckKeySizes(o.CA); err != nil { // an untrusted key could make one verification take hours
			return nil, newError("InvalidCredentials", FieldCredentials, "ca.crt: "+err.Error(),
				"use a certificate authority with a key of a usual size", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, newError("InvalidCredentials", FieldCredentials, "ca.crt has no certificate in PEM",
				"correct it, or remove the key ca.crt to use the certificate authorities of the system", nil)
		}
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(o.AccessKeyID, o.SecretAccessKey, o.SessionToken),
		Secure: u.Scheme == "https", Region: cmp.Or(o.Region, "us-east-1"), Transport: limitedTransport{transport}, MaxRetries: maxAttempts,
	})
	if err != nil {
		return nil, &Error{Reason: "InvalidEndpoint", Field: FieldEndpoint, Message: "it cannot be used", Next: "write it as https://s3.example.com", err: err}
	}
	return &S3{client, o.Bucket}, nil
}

// Close closes idle connections.
func (s *S3) Close() error {
	s.client.CredContext().Client.CloseIdleConnections()
	return nil
}

type limitedTransport struct{ next *http.Transport }

// RoundTrip limits the response.
func (l limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	most := int64(maxPageBytes)
	if r.Method == http.MethodGet && r.URL.RawQuery == "" { // the content of an object
		most = maxObjectBytes
	}
	answer.Body = http.MaxBytesReader(nil, answer.Body, most)
	return answer, nil
}

// CloseIdleConnections implements an optional interface of http.Client.
func (l limitedTransport) CloseIdleConnections() { l.next.CloseIdleConnections() }

// Put implements Store.
func (s *S3) Put(ctx context.Context, name string, from io.ReaderAt, size int64) error {
	_, err := s.client.PutObject(ctx, s.bucket, name, io.NewSectionReader(from, 0, size), size, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: partSize, NumThreads: 1,
	})
	return convertError(err)
}

// Write implements Store. It keeps one part in memory.
func (s *S3) Write(ctx context.Context, name string, from io.Reader) (int64, error) {
	done, err := s.client.PutObject(ctx, s.bucket, name, from, -1, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: partSize, NumThreads: 1,
	})
	return done.Size, convertError(err)
}

// Get implements Store.
func (s *S3) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	o, _, _, err := minio.Core{Client: s.client}.GetObject(ctx, s.bucket, name, minio.GetObjectOptions{})
	if err != nil {
		return nil, convertError(err)
	}
	return objectBody{o}, nil
}

type objectBody struct{ io.ReadCloser }

// Read returns converted errors.
func (o objectBody) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = convertError(err)
	}
	return n, err
}

// List implements Store.
func (s *S3) List(ctx context.Context, folder string, fn func(name string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{
		Prefix: strings.TrimSuffix(folder, "/") + "/", Recursive: true, MaxKeys: pageKeys,
	}) {
		if o.Err != nil {
			return convertError(o.Err)
		}
		if err := fn(o.Key); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, name string) error {
	err := convertError(s.client.RemoveObject(ctx, s.bucket, name, minio.RemoveObjectOptions{}))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
