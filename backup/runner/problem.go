package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"scute.dev/backup/schedule"
	"scute.dev/backup/store"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/mover/transfer"
	"scute.dev/view"
)

type problemError struct{ schedule.Problem }

func (e *problemError) Error() string { return e.Text() }

// NewError returns an error whose problem is recorded unchanged.
func NewError(p schedule.Problem) error { return &problemError{p} }

var errTimeout = errors.New("it took longer than spec.timeout")

func wrapTimeout(bounded context.Context, err error) error {
	if errors.Is(bounded.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errTimeout, err)
	}
	return err
}

func fieldOf(field string) string {
	switch field {
	case store.FieldBucket:
		return "spec.destination.s3.bucket"
	case store.FieldCredentials:
		return "spec.destination.s3.credentialsSecretRef"
	case store.FieldEndpoint:
		return "spec.destination.s3.endpoint"
	case store.FieldVolume:
		return "spec.destination.volume"
	default:
		return ""
	}
}

// ProblemOf returns what an error means for the user of the resource.
func ProblemOf(err error) schedule.Problem {
	var known *problemError
	var stored *store.Error
	var refused *transfer.RefusedError
	var final *transfer.FinalError
	switch {
	case errors.As(err, &known):
		return known.Problem
	case errors.Is(err, errTimeout):
		p := schedule.Problem{
			Reason: "TimedOut", Field: "spec.timeout", Message: errTimeout.Error(),
			Next: "find out what is slow, or raise spec.timeout; scute retries",
		}
		if errors.As(err, &stored) {
			p.Message += ": " + stored.Error()
		}
		return p
	case errors.As(err, &stored):
		return schedule.Problem{Reason: stored.Reason, Field: fieldOf(stored.Field), Message: stored.Message, Next: stored.Next + "; scute retries"}
	case errors.Is(err, archive.ErrTooLarge):
		return schedule.Problem{
			Reason: "TooLarge", Field: "spec.clusters", Message: err.Error() + ", the limit of scuted",
			Next: "back up fewer Clusters, by names or selector, or ask the operator of scute to raise clusterBackups.maxBytes of the chart " +
				"(--cluster-backup-max-bytes)",
		}
	case errors.As(err, &refused):
		message, next := describeErrors(refused.Findings)
		return schedule.Problem{Reason: "Refused", Field: "spec.clusters", Message: message, Next: next}
	case errors.As(err, &final):
		return schedule.Problem{Reason: "Refused", Message: err.Error(), Next: final.Next}
	default:
		return schedule.Problem{
			Reason: "BackupFailed", Message: err.Error(),
			Next: "scute retries; if the error persists, check the API server and the permissions of scuted: `scutectl doctor`",
		}
	}
}

// resourceFinding converts a finding that names arguments of scutectl to one about the resource.
func resourceFinding(f mover.Finding) mover.Finding {
	switch f.Field {
	case "--all":
		f.Field, f.Remedy = "", "create the BackupSchedule in the namespace of the Clusters"
	case "NAME":
		f.Field, f.Remedy = "", "select Clusters in the namespace of the BackupSchedule"
	}
	return f
}

// describeErrors returns the remedy of the first error as next.
func describeErrors(list []mover.Finding) (message, next string) {
	const first = 3
	var parts []string
	errors := 0
	for _, f := range list {
		if f.Severity != mover.Error {
			continue
		}
		f = resourceFinding(f)
		if len(parts) == 0 {
			next = f.Remedy
		}
		if errors++; errors <= first {
			parts = append(parts, strings.TrimPrefix(f.Field+": "+f.Message, ": "))
		}
	}
	return strings.Join(view.More(parts, errors), "; "), next
}
