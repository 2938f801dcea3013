package remediator

import "maps"

// PolicyGroup identifies the policies of one namespace. Policies in dry run are a separate group:
// their counts affect only their own namespace.
type PolicyGroup struct {
	Namespace string
	DryRun    bool
}

// NamespaceCounts holds the numbers of machines by failure domain, for each group of policies.
type NamespaceCounts map[PolicyGroup]map[string]int

// Add adds n to the count of a group in a failure domain.
func (c NamespaceCounts) Add(group PolicyGroup, domain string, n int) {
	if c[group] == nil {
		c[group] = make(map[string]int)
	}
	if c[group][domain] += n; c[group][domain] == 0 {
		delete(c[group], domain)
	}
}

// MassEvidence returns a function that returns, for a namespace, the numbers of all machines and of
// unhealthy machines from which mass failures are detected, by failure domain. In each failure
// domain it excludes the other namespace with the most unhealthy machines from the count of
// unhealthy machines, and the other namespace with the most healthy machines from the count of
// healthy ones. So one other namespace alone can neither cause nor hide a mass failure. For the
// namespace "" it counts all machines except those of policies in dry run. selected contains the
// numbers of machines that policies select, and marked the numbers of unhealthy ones among them.
// Neither must be changed while the function is in use.
func MassEvidence(selected, marked NamespaceCounts) func(namespace string) (machines, unhealthy map[string]int) {
	well := make(NamespaceCounts)
	for group, domains := range selected {
		for domain, n := range domains {
			well.Add(group, domain, max(0, n-marked[group][domain]))
		}
	}
	healthy, marks := totalsOf(well), totalsOf(marked)
	return func(namespace string) (machines, unhealthy map[string]int) {
		machines, unhealthy = healthy.countFor(namespace), marks.countFor(namespace)
		for domain, n := range unhealthy {
			machines[domain] += n
		}
		return machines, unhealthy
	}
}

// totals contains counts, and their sums by failure domain. The sums do not include policies in dry
// run.
type totals struct {
	counts NamespaceCounts
	sums   map[string]sum
}

// sum contains the sum of the counts of all namespaces in one failure domain, and the two largest
// of these counts.
type sum struct {
	all, most, second int
	largest           string // the namespace whose count is most
}

func totalsOf(counts NamespaceCounts) totals {
	t := totals{counts: counts, sums: make(map[string]sum)}
	for group, domains := range counts {
		if group.DryRun {
			continue
		}
		for domain, n := range domains {
			s := t.sums[domain]
			if s.all += n; n > s.most {
				s.second, s.most, s.largest = s.most, n, group.Namespace
			} else {
				s.second = max(s.second, n)
			}
			t.sums[domain] = s
		}
	}
	return t
}

// countFor returns the counts for a namespace: the sums without the largest count of another
// namespace, plus the machines of the namespace's own policies in dry run.
func (t totals) countFor(namespace string) map[string]int {
	counts := maps.Clone(t.counts[PolicyGroup{Namespace: namespace, DryRun: true}])
	if counts == nil {
		counts = make(map[string]int)
	}
	for domain, s := range t.sums {
		switch namespace {
		case "":
			counts[domain] += s.all
		case s.largest:
			counts[domain] += s.all - s.second
		default:
			counts[domain] += s.all - s.most
		}
	}
	return counts
}
