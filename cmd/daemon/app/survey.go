package app

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/internal/trust"
)

// surveyAge is how long the result of a survey is reused, because a survey reads all objects, and a log that may not be used is checked every two
// seconds.
const surveyAge = 30 * time.Second

// survey reads the log's high-water mark from the statuses of scute's resources.
type survey struct {
	reader client.Reader
	logID  string
	kinds  []string

	last   trust.Watermark
	readAt time.Time
}

// newSurvey returns a survey of the kinds that this daemon may list.
func newSurvey(reader client.Reader, logID string, remediation bool) *survey {
	s := &survey{reader: reader, logID: logID, kinds: []string{trust.Moves, trust.WorkflowRuns, trust.Pauses, trust.Schedules}}
	if remediation {
		s.kinds = append(s.kinds, trust.Remediations)
	}
	return s
}

// watermark returns the high-water mark in the statuses. It reuses a recent result.
func (s *survey) watermark(ctx context.Context, now time.Time) (trust.Watermark, error) {
	if !s.readAt.IsZero() && now.Sub(s.readAt) < surveyAge {
		return s.last, nil
	}
	mark, err := trust.HighestMark(ctx, s.reader, s.logID, s.kinds...)
	if err != nil {
		return trust.Watermark{}, err
	}
	s.last, s.readAt = mark, now
	return mark, nil
}
