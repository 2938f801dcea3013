package remediator

// PolicyGroup identifies the policies of one namespace. Policies in dry run are a separate group: their counts affect only their own namespace.
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

// healthy returns the number of selected machines that are not marked unhealthy.
func (c NamespaceCounts) healthy(marked NamespaceCounts, group PolicyGroup, domain string) int {
	return max(0, c[group][domain]-marked[group][domain])
}

// MassEvidence holds the numbers of healthy and unhealthy machines by failure domain from which mass failures are detected.
type MassEvidence struct {
	selected, marked   NamespaceCounts
	healthy, unhealthy map[string]*sum
}

// sum is the total of the counts of several namespaces, with the two largest counts.
type sum struct {
	all          int
	most, second int
	largest      string // the namespace with the count most
}

func (s *sum) add(namespace string, n int) {
	s.all += n
	switch {
	case n > s.most:
		s.second, s.most, s.largest = s.most, n, namespace
	case n > s.second:
		s.second = n
	}
}

// totalFor returns the total without the largest count of another namespace. For the namespace "" it returns the total.
func (s *sum) totalFor(namespace string) int {
	switch namespace {
	case "":
		return s.all
	case s.largest:
		return s.all - s.second
	default:
		return s.all - s.most
	}
}

// NewMassEvidence returns the evidence of the machines that policies select and of the machines
// that are marked unhealthy. It retains both arguments.
func NewMassEvidence(selected, marked NamespaceCounts) *MassEvidence {
	e := &MassEvidence{selected: selected, marked: marked, healthy: make(map[string]*sum), unhealthy: make(map[string]*sum)}
	add := func(to map[string]*sum, group PolicyGroup, domain string, n int) {
		if n <= 0 || group.DryRun {
			return
		}
		if to[domain] == nil {
			to[domain] = &sum{}
		}
		to[domain].add(group.Namespace, n)
	}
	for group, domains := range selected {
		for domain := range domains {
			add(e.healthy, group, domain, selected.healthy(marked, group, domain))
		}
	}
	for group, domains := range marked {
		for domain, n := range domains {
			add(e.unhealthy, group, domain, n)
		}
	}
	return e
}

// For returns the numbers of all machines and of unhealthy machines that count for a namespace, by
// failure domain. One other namespace alone can neither cause nor hide a mass failure, because the
// largest count of another namespace is excluded from the unhealthy machines, and likewise from the
// healthy machines. For the namespace "" all machines count except the machines of policies in dry
// run.
func (e *MassEvidence) For(namespace string) (machines, unhealthy map[string]int) {
	machines, unhealthy = make(map[string]int), make(map[string]int)
	dryRun := PolicyGroup{Namespace: namespace, DryRun: true}
	for domain, s := range e.healthy {
		machines[domain] += s.totalFor(namespace)
	}
	for domain := range e.selected[dryRun] {
		machines[domain] += e.selected.healthy(e.marked, dryRun, domain)
	}
	for domain, s := range e.unhealthy {
		unhealthy[domain] += s.totalFor(namespace)
	}
	for domain, n := range e.marked[dryRun] {
		unhealthy[domain] += n
	}
	for domain, n := range unhealthy {
		machines[domain] += n
	}
	return machines, unhealthy
}
