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

// MassEvidence returns a function with the numbers of all machines and of unhealthy machines, by
// failure domain, from which mass failures are detected for a namespace. One other namespace alone
// can neither cause nor hide a mass failure, because the largest count of another namespace is
// excluded from the unhealthy machines, and likewise from the healthy machines. For the namespace
// "" all machines count except the machines of policies in dry run. selected are the machines that
// policies select, and marked the unhealthy ones among them. Neither must be changed while the
// function is in use.
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

// totals holds counts with their sums by failure domain, without policies in dry run.
type totals struct {
	counts NamespaceCounts
	sums   map[string]sum
}

// sum is the sum of the counts of several namespaces, with the two largest counts.
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
