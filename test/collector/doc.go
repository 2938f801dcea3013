// Package collector runs the OpenTelemetry Collector's OTLP receiver and stores the received spans.
//
// It must not contain what scute's spans have to look like.
package collector
