// Package collector runs the OpenTelemetry Collector's OTLP receiver and stores the received spans.
//
// What never may live here: what scute's spans have to be.
package collector
