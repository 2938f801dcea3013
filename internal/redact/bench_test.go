package redact

import (
	"strings"
	"testing"
)

func BenchmarkMessage(b *testing.B) {
	for name, message := range map[string]string{
		"short": "connecting to https://127.0.0.1:6443: connection refused",
		"long":  strings.Repeat("admission webhook denied the request: spec.version is not supported; ", 150),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Message(message)
			}
		})
	}
}
