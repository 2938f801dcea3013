package otlp

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"scute.dev/eventlog"
	"scute.dev/export/tracing"
)

// service is a receiver of OTLP.
type service struct {
	collector.UnimplementedTraceServiceServer
	got      *collector.ExportTraceServiceRequest
	headers  metadata.MD
	response *collector.ExportTraceServiceResponse
	err      error
}

func (s *service) Export(ctx context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.got = request
	s.headers, _ = metadata.FromIncomingContext(ctx)
	return s.response, s.err
}

// startService starts a service, and sets the environment of a sender to it.
func startService(t *testing.T) (*service, *Sender) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, server := &service{response: &collector.ExportTraceServiceResponse{}}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-served })
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20sesame")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=blue")
	sender, err := NewSender(t.Context(), "uid-of-kube-system")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sender.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s, sender
}

func span() tracing.Span {
	of := eventlog.Aggregate{Kind: eventlog.KindRun, ID: "fleet/a/1"}
	begin := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	return tracing.Span{
		Name: "task a", TraceID: tracing.TraceID("log", of, ""), SpanID: [8]byte{1}, Parent: tracing.RootID("log", of), Start: begin, End: begin.Add(time.Second),
		Attributes: []attribute.KeyValue{tracing.AttributeTask.String("a")}, Failed: true, Message: "it broke",
	}
}

// TestRequest checks that a span is sent unchanged, with the resource and the headers of the environment.
func TestRequest(t *testing.T) {
	s, sender := startService(t)
	want := span()
	if refused, err := sender.Send(t.Context(), []tracing.Span{want}); err != nil || refused != 0 {
		t.Fatal(refused, err)
	}
	if got := s.headers.Get("authorization"); len(got) != 1 || got[0] != "Bearer sesame" {
		t.Errorf("headers = %v", s.headers)
	}
	of := s.got.GetResourceSpans()[0]
	said := map[string]string{}
	for _, kv := range of.GetResource().GetAttributes() {
		said[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
	if said["service.name"] != "scuted" || said["k8s.cluster.uid"] != "uid-of-kube-system" || said["k8s.cluster.name"] != "blue" {
		t.Errorf("resource = %v", said)
	}
	got := of.GetScopeSpans()[0].GetSpans()[0]
	switch {
	case got.GetName() != want.Name, string(got.GetTraceId()) != string(want.TraceID[:]), string(got.GetSpanId()) != string(want.SpanID[:]), string(got.GetParentSpanId()) != string(want.Parent[:]),
		got.GetStartTimeUnixNano() != uint64(want.Start.UnixNano()), got.GetEndTimeUnixNano() != uint64(want.End.UnixNano()),
		got.GetStatus().GetCode() != traces.Status_STATUS_CODE_ERROR, got.GetStatus().GetMessage() != "it broke",
		got.GetAttributes()[0].GetKey() != "scute.task.name":
		t.Errorf("received %v", got)
	}
}

// TestAnswers checks which errors are retried and which are final, and that errors contain no secret.
func TestAnswers(t *testing.T) {
	s, sender := startService(t)
	for code, refused := range map[codes.Code]int{
		codes.Unavailable: 0, codes.ResourceExhausted: 0, codes.DeadlineExceeded: 0, codes.Unauthenticated: 0, codes.PermissionDenied: 0, codes.Unimplemented: 0,
		codes.InvalidArgument: 2, codes.Internal: 2, codes.Unknown: 2,
	} {
		s.err = status.Error(code, "no, Bearer "+strings.Repeat("sesame", 5))
		n, err := sender.Send(t.Context(), []tracing.Span{span(), span()})
		if n != refused || err == nil || errors.Is(err, errRejected) != (refused > 0) || !strings.Contains(err.Error(), code.String()) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: refused %d, error %v", code, n, err)
		}
	}
	s.err, s.response = nil, &collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "too old"}}
	if n, err := sender.Send(t.Context(), []tracing.Span{span(), span()}); n != 1 || !errors.Is(err, errRejected) || !strings.Contains(err.Error(), "too old") {
		t.Errorf("partial success: refused %d, error %v", n, err)
	}
	s.response = &collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{ErrorMessage: "be slower"}}
	if n, err := sender.Send(t.Context(), []tracing.Span{span()}); n != 0 || err != nil {
		t.Errorf("warning: refused %d, error %v", n, err)
	}
}

// TestLargeSpansAreTaken checks that spans that exceed the size limit of a collector are sent in several requests, and
// do not block others.
func TestLargeSpansAreTaken(t *testing.T) {
	_, sender := startService(t)
	large := span()
	for range 100 { // more than a span has
		large.Attributes = append(large.Attributes, attribute.String("scute.cause", strings.Repeat("x", 1000)))
	}
	spans := slices.Repeat([]tracing.Span{large}, 50)
	d := &Delivery{Send: sender.Send, InitialInterval: time.Millisecond, OnRejected: func(n int, err error) { t.Errorf("%d spans were dropped: %v", n, err) }}
	ctx := withTimeout(t, time.Minute)
	d.Alarm = func(err error) { t.Fatalf("alarm: %v", err) }
	if err := d.send(ctx, spans); err != nil {
		t.Fatal(err)
	}
	if s := d.State(); s.Sent != 50 || s.Rejected != 0 {
		t.Errorf("state = %+v", s)
	}
}

// TestNobodyThere checks that a refused connection is not final.
func TestNobodyThere(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	sender, err := NewSender(t.Context(), "u")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := sender.Send(t.Context(), []tracing.Span{span()}); n != 0 || err == nil || errors.Is(err, errRejected) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Send = %d, error %v", n, err)
	}
	if err := sender.Close(t.Context()); err != nil {
		t.Error(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	if _, err := NewSender(t.Context(), "u"); err == nil || !strings.Contains(err.Error(), "by grpc only") {
		t.Error(err)
	}
}
