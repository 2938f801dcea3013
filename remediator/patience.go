package remediator

import (
	"fmt"
	"time"

	"scute.dev/internal/plural"
	"scute.dev/internal/timespan"
)

// ownersPatience is why a KubeadmControlPlane would not remediate a machine that it is handed; nil when it would, or is not asked to. A
// machine that it made in the remediation of another one has a note of that. It follows checkRetryLimits (remediation.go).
func (f *Facts) ownersPatience(d Decision, m *Machine, now time.Time) *Decision {
	last, ok := noteOf(m.RemediationFor)
	at, err := time.Parse(time.RFC3339, last.Timestamp)
	retry := f.Owner.Retry
	if d.Verdict != OwnerRemediation || !f.isControlPlane() || !ok || err != nil || !now.Before(at.Add(retry.MinHealthy)) {
		return nil
	}
	if !now.After(at.Add(retry.Period)) {
		return ask(fmt.Sprintf("wait, or lower spec.remediation.retryPeriodSeconds of %s %s", f.Owner.Kind, f.Owner.Name), ruleOwnerRetry,
			"its owner is to remediate it (rule %s), but %s remediated machine %s at %s, made this one for it, and remediates it no sooner than %s later (retryPeriodSeconds)",
			d.Rule, f.Owner.Name, last.Machine, at.UTC().Format(time.RFC3339), timespan.Text(retry.Period))
	}
	if retry.Max == nil || last.RetryCount < int(*retry.Max) {
		return nil
	}
	return &Decision{
		Verdict: CannotRemediate, Rule: "owner-max-retry",
		Reason: fmt.Sprintf("its owner is to remediate it (rule %s), but %s has retried what it did for machine %s %s, and does so no more before %s (maxRetry)",
			d.Rule, f.Owner.Name, last.Machine, plural.Of(last.RetryCount, "time"), at.Add(retry.MinHealthy).UTC().Format(time.RFC3339)),
		Next: fmt.Sprintf("find out what makes its machines fail; raise spec.remediation.maxRetry of %s %s, or delete the machine by hand (kubectl delete machine): it makes another", f.Owner.Kind, f.Owner.Name),
	}
}

// ownerRetries is when its owner may remediate a machine that it made in the remediation of another one; zero where nothing says so.
func (f *Facts) ownerRetries(m *Machine) time.Time {
	if m == nil {
		return time.Time{}
	}
	last, ok := noteOf(m.RemediationFor)
	at, err := time.Parse(time.RFC3339, last.Timestamp)
	return dueIf(ok && err == nil, at.Add(f.Owner.Retry.Period))
}
