package store

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scute.dev/kube/guard"
)

// bucket returns a bucket on a test server with the given handler.
func bucket(t *testing.T, h http.HandlerFunc, change func(*S3Options)) *S3 {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o := S3Options{Endpoint: server.URL, Bucket: "backups", Insecure: true, AccessKeyID: "key", SecretAccessKey: "secret"}
	if change != nil {
		change(&o)
	}
	s, err := OpenS3(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func refusingServer(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>private text</Message></Error>")
	}
}

// TestAnswers checks that each refusal names the field, and contains no text of the store except known codes.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		status              int
		code, reason, field string
	}{
		{403, "InvalidAccessKeyId", "CredentialsRefused", FieldCredentials},
		{403, "SignatureDoesNotMatch", "CredentialsRefused", FieldCredentials},
		{403, "private-code", "CredentialsRefused", FieldCredentials},
		{404, "NoSuchBucket", "BucketRefused", FieldBucket},
		{400, "private-code", "StoreFailed", FieldEndpoint},
	} {
		s := bucket(t, refusingServer(c.status, c.code), nil)
		err := s.Put(t.Context(), "one", strings.NewReader("x"), 1)
		var got *Error
		if !errors.As(err, &got) || got.Reason != c.reason || got.Field != c.field || got.Next == "" || strings.Contains(got.Error(), "private") {
			t.Errorf("Put with response %d %s = %v", c.status, c.code, err)
		}
	}
	s := bucket(t, refusingServer(404, "NoSuchKey"), nil)
	if _, err := s.Get(t.Context(), "one"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get of a missing file = %v, want ErrNotFound", err)
	}
}

// TestRedirect checks that redirects are not followed, so that a store cannot redirect requests to other hosts.
func TestRedirect(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer elsewhere.Close()
	s := bucket(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}, nil)
	if err := s.Put(t.Context(), "one", strings.NewReader("x"), 1); err == nil {
		t.Error("Put succeeded with a redirect")
	}
	if _, err := s.Get(t.Context(), "one"); err == nil {
		t.Error("Get succeeded with a redirect")
	}
	if asked {
		t.Error("a redirect was followed")
	}
}

// TestAddresses checks that the guard's refusal is reported, and that nothing is sent.
func TestAddresses(t *testing.T) {
	asked := false
	g := &guard.Guard{}
	s := bucket(t, func(http.ResponseWriter, *http.Request) { asked = true }, func(o *S3Options) { o.Dial = g.Dialer(time.Minute).DialContext })
	err := s.Put(t.Context(), "one", strings.NewReader("x"), 1)
	var got *Error
	if !errors.As(err, &got) || got.Reason != "AddressNotAllowed" || !strings.Contains(got.Message, "127.0.0.1") || asked {
		t.Errorf("Put = %v, request sent: %v", err, asked)
	}
}

// TestLargeAnswers checks that only an object may be large: lists and responses to writes are decoded in memory.
func TestLargeAnswers(t *testing.T) {
	const tooMuch = 1 << 20
	s := bucket(t, func(w http.ResponseWriter, r *http.Request) {
		root, element := "InitiateMultipartUploadResult", "<UploadId/>"
		switch {
		case r.Method == http.MethodGet && !r.URL.Query().Has("list-type"):
			w.Header().Set("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")
			_, _ = io.WriteString(w, strings.Repeat("x", tooMuch))
			return
		case r.Method == http.MethodGet:
			root, element = "ListBucketResult", "<Contents/>"
			if keys := r.URL.Query().Get("max-keys"); keys != "100" {
				t.Errorf("max-keys = %q, want 100", keys)
			}
		}
		_, _ = io.WriteString(w, "<"+root+">"+strings.Repeat(element, tooMuch/len(element))+"</"+root+">")
	}, nil)
	object, err := s.Get(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(object); err != nil || len(data) != tooMuch {
		t.Errorf("object: %d bytes, error %v", len(data), err)
	}
	_ = object.Close()
	large := strings.NewReader(strings.Repeat("x", partSize+1))
	for what, err := range map[string]error{
		"a list":                       s.List(t.Context(), "one", func(string) error { return nil }),
		"the start of a file in parts": s.Put(t.Context(), "one", large, large.Size()),
	} {
		var got *Error
		if !errors.As(err, &got) || got.Message != "the response of the store is too large" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestOptions checks that invalid options are reported before a request is sent.
func TestOptions(t *testing.T) {
	good := S3Options{Endpoint: "https://s3.example.com", Bucket: "backups", AccessKeyID: "key", SecretAccessKey: "secret"}
	for _, c := range []struct {
		change func(*S3Options)
		field  string
	}{
		{func(o *S3Options) { o.Endpoint = "s3.example.com" }, FieldEndpoint},
		{func(o *S3Options) { o.Endpoint = "http://s3.example.com" }, FieldEndpoint},
		{func(o *S3Options) { o.SecretAccessKey = "" }, FieldCredentials},
		{func(o *S3Options) { o.CA = []byte("x") }, FieldCredentials},
	} {
		o := good
		c.change(&o)
		var got *Error
		if _, err := OpenS3(o); !errors.As(err, &got) || got.Field != c.field {
			t.Errorf("OpenS3(%+v) = %v", o, err)
		}
	}
	if _, err := OpenS3(good); err != nil {
		t.Error(err)
	}
}

// TestUploadCutShort checks that an upload in parts is aborted if its context ends or its source fails: the parts would
// stay in the bucket, invisible to users.
func TestUploadCutShort(t *testing.T) {
	for _, why := range []string{"its time is over", "what it is read from fails"} {
		ctx, over := context.WithCancel(t.Context())
		defer over()
		aborted := make(chan string, 1)
		s := bucket(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			switch q := r.URL.Query(); {
			case r.Method == http.MethodPost && q.Has("uploads"):
				_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>it</UploadId></InitiateMultipartUploadResult>")
			case r.Method == http.MethodDelete:
				aborted <- q.Get("uploadId")
				w.WriteHeader(http.StatusNoContent)
			default:
				w.Header().Set("ETag", `"part"`)
			}
		}, nil)
		from := io.MultiReader(strings.NewReader(strings.Repeat("x", partSize+1)), reader(func() error {
			if why == "its time is over" {
				over()
				return ctx.Err()
			}
			return errors.New("the member died")
		}))
		if _, err := s.Write(ctx, "one", from); err == nil {
			t.Errorf("%s: Write succeeded", why)
		}
		if len(aborted) == 0 {
			t.Errorf("%s: the upload was not aborted", why)
		} else if id := <-aborted; id != "it" {
			t.Errorf("%s: upload %q was aborted, want it", why, id)
		}
	}
}

type reader func() error

func (r reader) Read([]byte) (int, error) { return 0, r() }
