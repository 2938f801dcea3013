package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"scute.dev/export/tracing"
	"scute.dev/internal/redact"
)

// errRejected means that the collector would reject the same spans again.
var errRejected = errors.New("the collector refuses spans")

// Sender sends spans to the collector that the environment names (OTEL_EXPORTER_OTLP_ENDPOINT and related variables).
type Sender struct {
	exporter *otlptrace.Exporter
	resource *resource.Resource
}

// NewSender returns a Sender. Its connection is opened when the first span is sent. cluster is the
// UID of the namespace kube-system.
func NewSender(ctx context.Context, cluster string) (*Sender, error) {
	if protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "grpc"); protocol != "grpc" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: scuted sends by grpc only; name the port of the collector for gRPC, which is usually 4317", protocol)
	}
	of, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName("scuted"), semconv.K8SClusterUID(cluster)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	exporter, err := otlptracegrpc.New(ctx,
		otlptracegrpc.WithDialOption(grpc.WithChainUnaryInterceptor(captureResponse)),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}), // Delivery retries
	)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the collector: %w", err)
	}
	return &Sender{exporter: exporter, resource: of}, nil
}

// Close closes the connection.
func (s *Sender) Close(ctx context.Context) error { return s.exporter.Shutdown(ctx) }

type exportResponse struct {
	err      error
	rejected int64
	message  string
}

type responseKey struct{}

// captureResponse stores the response of the collector, as an interceptor of the connection,
// because the exporter returns the response only as text.
func captureResponse(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, request, reply, conn, opts...)
	if a, ok := ctx.Value(responseKey{}).(*exportResponse); ok {
		a.err = err
		if r, ok := reply.(*collector.ExportTraceServiceResponse); ok && err == nil {
			a.rejected, a.message = r.GetPartialSuccess().GetRejectedSpans(), r.GetPartialSuccess().GetErrorMessage()
		}
	}
	return err
}

// Send makes one request. refused is the number of spans that the collector will never accept; in
// that case the error is errRejected, with the reason. After any other error, all spans can be sent
// again. The timeout is set by the environment variable OTEL_EXPORTER_OTLP_TIMEOUT (default: 10 s).
func (s *Sender) Send(ctx context.Context, spans []tracing.Span) (refused int, err error) {
	stubs := make(tracetest.SpanStubs, len(spans))
	for i := range spans {
		stubs[i] = s.spanStub(&spans[i])
	}
	var said exportResponse
	err = s.exporter.ExportSpans(context.WithValue(ctx, responseKey{}, &said), stubs.Snapshots())
	switch {
	case said.err != nil && isPermanent(status.Code(said.err)):
		return len(spans), fmt.Errorf("%w: %w", errRejected, safeMessage(said.err))
	case said.err != nil:
		return 0, safeMessage(said.err)
	case said.rejected > 0:
		return int(min(said.rejected, int64(len(spans)))), fmt.Errorf("%w: %s", errRejected, redact.Message(said.message))
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case said.message != "": // a warning: all spans were accepted
		return 0, nil
	default:
		return 0, err
	}
}

// safeMessage returns an error with the parts of a response that cannot contain secrets.
func safeMessage(err error) error {
	s := status.Convert(err)
	return fmt.Errorf("%s: %s", s.Code(), redact.Message(s.Message()))
}

// isPermanent reports whether the collector would return the same code for these spans again. A
// code that can have its cause in the connection to the collector is not permanent.
func isPermanent(code grpccodes.Code) bool {
	switch code {
	case grpccodes.InvalidArgument, grpccodes.FailedPrecondition, grpccodes.AlreadyExists, grpccodes.Internal, grpccodes.Unknown:
		return true
	default:
		return false
	}
}

// spanStub converts a span to the form that the exporter accepts. It does so without the tracer of
// the SDK, which would generate IDs and times.
func (s *Sender) spanStub(span *tracing.Span) tracetest.SpanStub {
	of := trace.SpanContextConfig{TraceID: span.TraceID, SpanID: span.SpanID, TraceFlags: trace.FlagsSampled}
	out := tracetest.SpanStub{
		Name: span.Name, SpanContext: trace.NewSpanContext(of), SpanKind: trace.SpanKindInternal, StartTime: span.Start, EndTime: span.End,
		Attributes: span.Attributes, Resource: s.resource, InstrumentationScope: instrumentation.Scope{Name: "scute.dev", SchemaURL: semconv.SchemaURL},
	}
	if span.Parent.IsValid() {
		of.SpanID = span.Parent
		out.Parent = trace.NewSpanContext(of)
	}
	if span.Failed {
		out.Status = sdk.Status{Code: codes.Error, Description: span.Message}
	} else if span.Message != "" {
		out.Attributes = append(out.Attributes[:len(out.Attributes):len(out.Attributes)], attribute.String("scute.message", span.Message))
	}
	return out
}
