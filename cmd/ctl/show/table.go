package show

import (
	"fmt"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/term"
)

// Table lists Moves, one a row; wide adds the message.
func (v View) Table(list []*v1alpha1.Move, namespaces, wide bool) []string {
	t := term.Table{Header: []string{"NAME", "PHASE", "SINCE", "CLUSTERS", "CREATED", "DELETED", "AWAKE", "AGE"}}
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	if wide {
		t.Header = append(t.Header, "MESSAGE")
		t.Wrap = 1
	}
	for _, m := range list {
		c := m.Status.Counts
		row := []string{
			m.Name, v.Phase(m), v.Age(m.Status.PhaseSince), fmt.Sprint(c.Clusters),
			count(c.Created, c.Objects, m), count(c.Deleted, c.ToDelete, m), count(c.Awake, c.ToAwake, m),
			v.Age(&m.CreationTimestamp),
		}
		if namespaces {
			row = append([]string{m.Namespace}, row...)
		}
		if wide {
			row = append(row, term.Clean(m.Status.Message))
		}
		t.Add(row...)
	}
	return t.Lines(v.Paint, v.Width)
}

// count is "done/total", or "-" while there is no plan to count by and where none is carried out.
func count(done, total int, m *v1alpha1.Move) string {
	if m.Spec.DryRun || m.Status.Counts.ToDelete == 0 || total == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", done, total)
}
