package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/view"
)

type providerReport struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	// Measured is true if the cluster was paused for the measurement. A dry run does not pause it.
	Measured bool `json:"measured"`
	Passed   bool `json:"passed"`
	// TimeoutSeconds is how long an object may take to acknowledge.
	TimeoutSeconds float64 `json:"timeoutSeconds,omitempty"`
	// ResumeSeconds is the time between the request to delete the Pause and the moment when it no
	// longer existed.
	ResumeSeconds float64        `json:"resumeSeconds,omitempty"`
	Kinds         []providerKind `json:"kinds"`
}

func (r *providerReport) objects() (all int) {
	for _, k := range r.Kinds {
		all += k.Objects
	}
	return all
}

// lines returns a table of the kinds, grouped by API group. Below it are the remedies for kinds
// that failed.
func (r *providerReport) lines(v kit.View) []string {
	header := []string{"KIND", "OBJECTS", "WITH PAUSED"}
	if r.Measured {
		header = []string{"KIND", "OBJECTS", "ANSWER", "BY", "AFTER", "RESUMED"}
	}
	t := cli.Table{Header: header, Indent: "  "}
	for _, k := range r.Kinds {
		name, _, _ := strings.Cut(k.Kind, ".")
		row := []string{name, fmt.Sprint(k.Objects), fmt.Sprint(k.Conditions)}
		if r.Measured {
			row = []string{name, fmt.Sprint(k.Objects), string(k.Answer), formatSignals(k), formatSlowest(k), formatResumed(k)}
		}
		t.Add(row...)
	}
	rows := t.Lines(v.Paint, v.Width)
	out, in := rows[:1:1], ""
	for i, k := range r.Kinds {
		if g := group(k.Kind); g != in {
			out, in = append(out, v.Paint.Text(cli.Dim, cmp.Or(g, "core"))), g
		}
		row := rows[i+1]
		if r.Measured && !k.Passed {
			row = v.Paint.Text(cli.Red, row)
		}
		out = append(out, row)
	}
	return append(out, r.faults(v)...)
}

func (r *providerReport) faults(v kit.View) (out []string) {
	if !r.Measured {
		return nil
	}
	for _, k := range r.Kinds {
		if k.Passed {
			continue
		}
		out = append(out, "")
		out = append(out, cli.Wrap(cli.Clean(k.Kind+": "+k.Reason), v.Width)...)
		out = append(out, cli.Wrap(cli.Clean("→ "+k.Remedy), v.Width)...)
	}
	return out
}

func formatSignals(k providerKind) string {
	if k.Answer != acknowledged {
		return "-"
	}
	return strings.Join(k.Signals, ", ")
}

func formatSlowest(k providerKind) string {
	if k.SlowestSeconds == nil || k.Answer != acknowledged {
		return "-"
	}
	return seconds(*k.SlowestSeconds)
}

func seconds(n float64) string {
	return view.Duration(time.Duration(n * float64(time.Second)).Round(100 * time.Millisecond))
}

func formatResumed(k providerKind) string {
	switch {
	case k.StillPaused > 0:
		return "no"
	case k.Conditions == 0 && k.Answer != acknowledged:
		return "-"
	default:
		return "yes"
	}
}
