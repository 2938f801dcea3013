// Package collector runs the OTLP receiver of the OpenTelemetry Collector in this process, and keeps the spans that it takes.
//
// What never may live here: what scute's spans have to be.
package collector
