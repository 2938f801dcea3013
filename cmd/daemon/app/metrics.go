package app

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"scute.dev/eventlog"
	"scute.dev/mover/runner"
)

// registerMetrics adds scute's own figures to those of the controllers: moves by phase, and how full the log is.
func registerMetrics(moves *runner.Moves, log *eventlog.Log) {
	c := &collector{
		moves: moves, log: log,
		phase:    prometheus.NewDesc("scute_moves", "Moves in the event log, by phase.", []string{"phase"}, nil),
		commits:  prometheus.NewDesc("scute_log_commits", "Commits in the event log.", nil, nil),
		bytes:    prometheus.NewDesc("scute_log_bytes", "Size of the event log.", nil, nil),
		maxBytes: prometheus.NewDesc("scute_log_max_bytes", "Size at which the event log refuses new events.", nil, nil),
	}
	var again prometheus.AlreadyRegisteredError
	if err := metrics.Registry.Register(c); errors.As(err, &again) {
		metrics.Registry.Unregister(again.ExistingCollector) // a second daemon in one process, in a test
		metrics.Registry.MustRegister(c)
	}
}

type collector struct {
	moves                           *runner.Moves
	log                             *eventlog.Log
	phase, commits, bytes, maxBytes *prometheus.Desc
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	phases := make(map[string]int)
	for _, id := range c.moves.IDs() {
		if s, ok := c.moves.Status(id); ok {
			phases[string(s.Phase)]++
		}
	}
	for phase, n := range phases {
		ch <- prometheus.MustNewConstMetric(c.phase, prometheus.GaugeValue, float64(n), phase)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	stats, err := c.log.Stats(ctx)
	if err != nil {
		return // /readyz says so
	}
	ch <- prometheus.MustNewConstMetric(c.commits, prometheus.GaugeValue, float64(stats.Commits))
	ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(stats.Bytes))
	ch <- prometheus.MustNewConstMetric(c.maxBytes, prometheus.GaugeValue, float64(stats.MaxBytes))
}
