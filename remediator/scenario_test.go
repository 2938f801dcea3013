package remediator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// TestScenarios plays remediations as scripts, one for each rule, which the head of the script names. A command
// advances the time (after=5m), applies the events on the lines below it, and then takes turns until nothing changes.
// It prints what the owner did, the decided events, the actions (>), and the resulting state. Update the scripts with
// -rewrite.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/remediation", func(t *testing.T, path string) {
		start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		datadriven.RunTest(t, path, newStory(start).run)
	})
}

// newStory returns a new story.
func newStory(start time.Time) *story {
	s := &story{start: start, world: newWorld(start)}
	for i := range s.world.policy.Checks.Node {
		s.world.policy.Checks.Node[i].Timeout = 0 // without timeouts, unless a script sets them
	}
	return s
}

type story struct {
	start  time.Time
	world  *world
	state  remediator.State
	log    []entry
	phases map[types.UID]string // the last printed status of each machine's remediation
	chain  chain
}

type entry struct {
	event remediator.Event
	at    time.Time
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	var b strings.Builder
	w := s.world
	if d.HasArg("after") {
		var text string
		d.ScanArgs(t, "after", &text)
		w.now = w.now.Add(duration(d, t, text))
	}
	for line := range strings.Lines(d.Input) {
		if words := strings.Fields(line); len(words) > 0 {
			s.apply(t, d, &b, words)
		}
	}
	switch d.Cmd {
	case "given":
		return b.String()
	case "turn":
		s.turn(t, &b)
	default:
		d.Fatalf(t, "no such command: %s", d.Cmd)
	}
	return b.String()
}

// turn takes turns until there are no more events or actions.
func (s *story) turn(t *testing.T, b *strings.Builder) {
	t.Helper()
	w := s.world
	if s.state.Owner.UID == "" {
		s.store(t, nil, remediator.Registered{Owner: w.owner.Owner}, remediator.Claimed{Holder: "one"})
	}
	for range 12 {
		f := s.observe()
		events := remediator.Decide(&s.state, f, w.now)
		if again := remediator.Decide(s.state.Clone(), s.observe(), w.now); !reflect.DeepEqual(events, again) {
			t.Fatalf("Decide on the same facts returned other events: %s", cmp.Diff(events, again))
		}
		if f.Cluster.Reachable != object.Absent {
			w.etcdRequests.Last = w.now
		}
		s.store(t, b, events...)
		actions, failed := remediator.Actions(&s.state, f, w.now), false
		for _, a := range actions {
			word := "> " + action(a)
			if err := w.perform(f, a); err != nil {
				word, failed = word+": "+err.Error(), true
			}
			line(b, "%s", word)
		}
		if len(events) == 0 && (len(actions) == 0 || failed) {
			s.status(b)
			line(b, "%s", s.summary())
			return
		}
	}
	t.Fatalf("no end after 12 turns:\n%s", b)
}

func (s *story) observe() *remediator.Facts {
	f := s.world.observe(false)
	if remediator.NeedsEtcdProbe(&s.state, f, s.world.now) {
		f = s.world.observe(true)
	}
	made := remediator.StepObjects(&s.state)
	for i := range f.Machines { // an object is found only if the policy or the log names its kind
		m := &f.Machines[i]
		m.StepObjects = slices.DeleteFunc(m.StepObjects, func(step string) bool {
			_, logged := made[m.UID][step]
			return !logged && !slices.ContainsFunc(f.Policy.Escalation, func(r remediator.EscalationStep) bool { return r.Name == step })
		})
	}
	return f
}

// store encodes, decodes and applies events, and checks that a replay of the log gives the same state.
func (s *story) store(t *testing.T, b *strings.Builder, events ...remediator.Event) {
	t.Helper()
	catalog := remediator.NewCatalog()
	if wrong := s.chain.add(&s.state, events); wrong != "" {
		t.Error(wrong)
	}
	for _, e := range events {
		if b != nil {
			line(b, "%s", formatEvent(e, s.world.now))
		}
		stored, err := catalog.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := catalog.Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		s.log = append(s.log, entry{again, s.world.now})
		s.state.Apply(e, s.world.now)
	}
	var again remediator.State
	for _, f := range s.log {
		again.Apply(f.event, f.at)
	}
	if diff := cmp.Diff(s.state.Clone(), again.Clone()); diff != "" {
		t.Fatalf("replay differs from the state: %s", diff)
	}
}

// apply applies one line of a script.
func (s *story) apply(t *testing.T, d *datadriven.TestData, b *strings.Builder, words []string) {
	t.Helper()
	w := s.world
	word := func(n int) string {
		if n < len(words) {
			return words[n]
		}
		return ""
	}
	rest := func(n int) string { return strings.Join(words[min(n, len(words)):], " ") }
	verb, value := word(0), word(2)
	m := w.machine(word(1))
	if m == nil && slices.Contains([]string{"kubelet", "node", "pods", "etcd", "joins", "gone", "delete", "hook", "request", "hold", "abort", "remediate", "skip", "condition", "says", "annotate", "doomed", "ghost", "domain", "drains", "detaches", "unwired", "infra", "unseen", "seen", "database", "complains"}, verb) {
		d.Fatalf(t, "%s: no such machine", strings.Join(words, " "))
	}
	switch verb {
	case "machines":
		n, err := strconv.Atoi(word(1))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		for i := range n {
			domain := ""
			if w.owner.Kind == string(remediator.ControlPlane) {
				domain = string(rune('a' + i%3))
			}
			w.add(domain)
		}
		w.owner.Replicas = int32(n) //nolint:gosec // a handful
		if w.cluster.Topology {
			w.cluster.TopologyReplicas = w.owner.Replicas
		}
	case "owner":
		s.owner(t, d, b, words[1:])
	case "cluster":
		for _, pair := range words[1:] {
			key, value, _ := strings.Cut(pair, "=")
			set(t, d, pair, map[string]func() error{
				"topology": boolean(&w.cluster.Topology, value), "paused": boolean(&w.cluster.Paused, value),
				"deleting": boolean(&w.cluster.Deleting, value), "upgrade-pending": boolean(&w.cluster.UpgradePending, value),
				"replicas": integer(&w.cluster.TopologyReplicas, value),
				"uid":      func() error { w.cluster.UID = types.UID(value); return nil },
				"region":   func() error { w.cluster.Region = value; return nil },
				"domains":  func() error { w.cluster.FailureDomains = strings.Split(value, ","); return nil },
				"reach":    func() error { w.cluster.Reachable = object.ConditionStatus(value); return nil },
			}[key])
		}
	case "policy":
		s.policy(t, d, words[1:])
	case "ledger":
		l := &w.ledger
		for _, pair := range words[1:] {
			key, value, _ := strings.Cut(pair, "=")
			set(t, d, pair, map[string]func() error{
				"active": integer(&l.Active, value), "watched": integer(&l.Watched, value), "unhealthy": integer(&l.Unhealthy, value),
				"started":     func() error { l.Started = append(l.Started, w.now.Add(-duration(d, t, value))); return nil },
				"massfailure": func() error { l.MassFailureEnded = w.now.Add(-duration(d, t, value)); return nil },
			}[key])
		}
	case "fleet":
		s.fleet(t, d, words[1:])
	case "move":
		w.move = word(1)
	case "kubelet":
		m.Kubelet = value == "alive"
	case "node":
		m.Pressed = value != "well"
	case "pods":
		m.Pods = value == "well"
	case "etcd":
		switch value {
		case "alive", "dead", "cut":
			m.Etcd, m.Cut = value == "alive", value == "cut"
			if m.Leader && !m.Etcd {
				w.elect("")
			}
		case "askable", "unaskable":
			m.EtcdUnreachable = value == "unaskable"
		case "leads":
			w.elect(m.Node)
		case "learner":
			m.Learner = true
		case "removed":
			m.Member, m.Etcd = false, false
			w.elect("")
		default:
			d.Fatalf(t, "etcd %s: no such thing", value)
		}
	case "moving": // the older MachineSets, for an update in place
		w.moving = true
	case "namesake":
		w.orphans = append(w.orphans, orphan{Name: "member 9 of " + m.Node, Namesake: m.Node})
	case "by-quorum":
		w.byQuorum = true
	case "etcd-error":
		w.etcdErr = rest(1)
	case "database": // size, bytes in use, and quota of a member's database, in MiB
		for i, to := range []*int64{&m.Database.Size, &m.Database.InUse, &m.Database.Quota} {
			n, err := strconv.ParseInt(word(2+i), 10, 64)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			*to = n << 20
		}
	case "refused": // by whom or what, and why
		w.owner.Refused = rest(1)
	case "fails": // a write, with the runner's message
		s.store(t, b, remediator.TransientFailure{Message: rest(1)})
	case "dying":
		w.diesBeforeDefragment, w.diesBeforeWrite = word(1) != "off", word(1) == "all"
	case "stalls":
		w.defragmentHangs = word(1) != "off"
	case "complains":
		m.MemberReportedUnhealthy = value != "off"
	case "alarms":
		w.alarms = nil
		for _, alarm := range words[1:] {
			kind, name, _ := strings.Cut(alarm, "=")
			w.alarms = append(w.alarms, kind+" of node-"+name)
		}
	case "acts": // slowly: it has chosen the machine to delete, and deletes it when it acts next
		w.delaysDeletion = word(1) == "slowly"
		did, _ := w.act()
		if did == "" {
			did = "does nothing"
		}
		line(b, "the owner %s", did)
	case "appears":
		w.provision(word(1))
	case "joins":
		if !w.join(m) {
			line(b, "etcd does not take %s", m.Name)
		}
	case "unwired":
		m.OtherHealthCheck = value
	case "passed": // by the MachineHealthCheck that creates requests for scute
		m.HealthChecksPass = object.ConditionStatus(value)
	case "domain":
		m.FailureDomain = value
	case "unseen", "seen": // by the watches
		m.Unobserved = verb == "unseen"
	case "doomed":
		m.NeverJoins = true
	case "ghost": // it joins etcd only
		m.Member, m.Etcd = true, true
	case "delete":
		line(b, "somebody %s", w.delete(m))
	case "gone":
		if !w.finishDeletion(m) {
			line(b, "%s stays", m.Name)
		}
	case "hook":
		m.Hooks = words[2:]
	case "request": // by a MachineHealthCheck, or by hand
		m.Request = w.request(m)
		m.Request.Manual = value == "by-hand"
		m.Request.Deleting = value == "deleting"
		m.Request.OrdersCopied = value == "carried"
		if !m.Request.Manual && m.HealthChecksPass == object.Absent {
			m.HealthChecksPass = object.False
		}
	case "hold":
		if m.Request == nil {
			d.Fatalf(t, "no request of %s to hold", m.Name)
		}
		m.Request.Hold, m.Request.HoldUntil, m.Request.HoldReason = value != "off", time.Time{}, rest(3)
		if value != "off" && value != "on" {
			m.Request.HoldUntil = w.now.Add(duration(d, t, value))
		}
	case "abort":
		m.Request.Abort = value != "off"
	case "remediate":
		m.Remediate = value != "off"
	case "skip":
		m.Skip = value != "off"
	case "condition":
		if value == "-" {
			m.removeCondition(word(3))
			break
		}
		w.setCondition(m, value, object.ConditionStatus(word(3)), rest(4))
	case "says": // the condition of its Node in the workload cluster: type, status, and for how long
		if value == "nothing" {
			m.NodeFacts = &remediator.NodeFacts{Err: rest(3)}
			break
		}
		if value == "gone" {
			m.NodeFacts = &remediator.NodeFacts{}
			break
		}
		if m.NodeFacts == nil || m.NodeFacts.Err != "" {
			m.NodeFacts = &remediator.NodeFacts{Conditions: make(map[string]remediator.Condition)}
		}
		since := w.now
		if word(4) != "" {
			since = since.Add(-duration(d, t, word(4)))
		}
		m.NodeFacts.Conditions[value] = remediator.Condition{Status: object.ConditionStatus(word(3)), Since: since}
	case "notice": // on its Node or Machine: where, the key, and the value; - removes it
		if m.NodeFacts == nil || m.NodeFacts.Err != "" {
			m.NodeFacts = &remediator.NodeFacts{Conditions: make(map[string]remediator.Condition)}
		}
		on := map[string]*map[string]string{"NodeTaint": &m.NodeFacts.Taints, "NodeAnnotation": &m.NodeFacts.Annotations, "MachineAnnotation": &m.Annotations}[value]
		*on = maps.Clone(*on)
		if *on == nil {
			*on = make(map[string]string)
		}
		(*on)[word(3)] = rest(4)
		if word(4) == "-" {
			delete(*on, word(3))
		}
	case "annotate":
		set(t, d, strings.Join(words, " "), map[string]func() error{
			"delete":          func() error { m.DeleteAnnotation = word(3); return nil },
			"remediation-for": func() error { m.RemediationFor = word(3); return nil },
			"mark":            func() error { m.UnhealthyAnnotation = word(3); return nil },
			"paused":          func() error { m.Paused = word(3) != "off"; return nil },
			"certificates":    func() error { m.Certificates = word(3); return nil },
			"steps":           func() error { m.StepObjects = words[3:]; return nil },
			"step-failed":     func() error { m.FailedSteps = map[string]string{word(3): rest(4)}; return nil },
			"expiry":          func() error { m.CertificatesStatus, w.staleStatus = word(3), true; return nil },
		}[value])
	case "drains":
		m.Draining, m.Detaching = w.now, time.Time{}
	case "detaches":
		m.Draining, m.Detaching = time.Time{}, w.now
	case "on-delete":
		w.onDelete = true
	case "rollout":
		w.target = word(1)
	case "dies":
		s.store(t, b, remediator.Claimed{Holder: "another"})
		w.maintenance = remediator.MaintenanceFacts{}
	default:
		d.Fatalf(t, "%s: no such thing happens", verb)
	}
}

func (s *story) owner(t *testing.T, d *datadriven.TestData, b *strings.Builder, pairs []string) {
	t.Helper()
	o := &s.world.owner
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		set(t, d, pair, map[string]func() error{
			"kind": func() error {
				o.Kind = value
				if value != string(remediator.ControlPlane) {
					o.CertificateTrigger, s.world.cluster.FailureDomains = false, nil
				}
				return nil
			},
			"tested": boolean(&o.Tested, value), "certificate-trigger": boolean(&o.CertificateTrigger, value),
			"external-etcd": boolean(&o.ExternalEtcd, value), "paused": boolean(&o.Paused, value), "deleting": boolean(&o.Deleting, value),
			"observed": boolean(&o.Observed, value), "uninitialized": boolean(&o.Uninitialized, value), "found": boolean(&o.Found, value),
			"max-surge": integer(&o.MaxSurge, value), "replicas": integer(&o.Replicas, value),
			"version":      func() error { o.Version = value; return nil },
			"retry-period": func() error { o.Retry.Period = duration(d, t, value); return nil },
			"max-retry":    func() error { o.Retry.Max = new(int32); return integer(o.Retry.Max, value)() },
			"relaxed":      func() error { o.Relaxed = value; return nil },
		}[key])
	}
}

func (s *story) policy(t *testing.T, d *datadriven.TestData, pairs []string) {
	t.Helper()
	p := &s.world.policy
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		span := func(to *time.Duration) func() error { return func() error { *to = duration(d, t, value); return nil } }
		set(t, d, pair, map[string]func() error{
			"none":  func() error { p.Name, p.UID = "", ""; return nil },
			"again": func() error { p.Name, p.UID, p.Unreadable = "default", "policy", ""; return nil },
			"unreadable": func() error {
				p.Unreadable = "spec.hold is of type array, and must be a duration"
				return nil
			},
			"dry-run": boolean(&p.DryRun, value), "accepts-delete-first": boolean(&p.AllowsDeleteFirst, value),
			"guards": boolean(&p.GuardsMachines, value),
			"pause": func() error {
				p.Paused = slices.DeleteFunc([]string{value}, func(s string) bool { return s == "" })
				return nil
			},
			"methods": func() error {
				clear(p.Methods)
				for method := range strings.SplitSeq(value, ",") {
					p.Methods[v1alpha1.RepairMethod(method)] = true
				}
				return nil
			},
			"timeout": func() error {
				for i := range p.Checks.Node {
					p.Checks.Node[i].Timeout = duration(d, t, value)
				}
				return nil
			},
			"check": func() error {
				condition, timeout, _ := strings.Cut(value, "/")
				kind, status, _ := strings.Cut(condition, ":")
				p.Checks.Node = append(p.Checks.Node, remediator.Check{Type: kind, Status: object.ConditionStatus(status), Timeout: duration(d, t, timeout)})
				return nil
			},
			"notice": func() error { // the type, the key, and its value, or after a slash the lead time
				place, key, _ := strings.Cut(value, ":")
				key, lead, timed := strings.Cut(key, "/")
				key, wanted, _ := strings.Cut(key, ":")
				n := remediator.Notice{Type: v1alpha1.NoticeType(place), Key: key, Value: wanted, Timed: timed}
				if timed {
					n.Lead = duration(d, t, lead)
				}
				p.Checks.Notices = append(p.Checks.Notices, n)
				return nil
			},
			"defragment": func() error { // the pause between two members, and the deadline of each
				pause, deadline, _ := strings.Cut(value, "/")
				p.Defragmentation = remediator.Defragmentation{
					Enabled: true, FreePercent: 45, MinSize: 100 << 20, Pause: duration(d, t, pause), Deadline: duration(d, t, deadline),
				}
				return nil
			},
			"disarm": boolean(&p.Defragmentation.Disarm, value),
			"survey": span(&p.Survey), "hold": span(&p.Hold), "scale-up": span(&p.Timeouts.ScaleUp), "ready": span(&p.Timeouts.Ready), "removal": span(&p.Timeouts.Removal),
			"hooks": func() error { p.Hooks = strings.Split(value, ","); return nil },
			"drain": span(&p.Removal.Drain), "detach": span(&p.Removal.Detach),
			"cooldown": span(&p.Limits.Cooldown), "attempts": integer(&p.Attempts, value),
			"at-once": integer(&p.Limits.AtOnce, value), "per-window": integer(&p.Limits.PerWindow, value),
			"workers-at-once": integer(&p.Limits.WorkersAtOnce, value),
			"step": func() error {
				name, timeout, _ := strings.Cut(value, "/")
				if p.Escalation = slices.Clone(p.Escalation); timeout == "-" {
					p.Escalation = slices.DeleteFunc(p.Escalation, func(step remediator.EscalationStep) bool { return step.Name == name })
					return nil
				}
				p.Escalation = append(p.Escalation, remediator.EscalationStep{Name: name, Timeout: duration(d, t, timeout), APIVersion: "example.com/v1", Kind: "Cure"})
				return nil
			},
		}[key])
	}
}

// fleet sets facts of the whole fleet. A count belongs to a failure domain, as in unhealthy=a:60.
func (s *story) fleet(t *testing.T, d *datadriven.TestData, pairs []string) {
	t.Helper()
	f, l := &s.world.fleet, &s.world.fleet.Limits
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		domain, number, _ := strings.Cut(value, ":")
		counted := func(in *map[string]int) func() error {
			return func() error {
				n, err := strconv.Atoi(number)
				if *in == nil {
					*in = make(map[string]int)
				}
				(*in)[domain] = n
				return err
			}
		}
		mass := func(to *remediator.MassFailure) func() error {
			return func() error {
				_, err := fmt.Sscanf(value, "%d%%/%d", &to.Percent, &to.Floor)
				to.Cooldown = 10 * time.Minute
				return err
			}
		}
		set(t, d, pair, map[string]func() error{
			"machines": counted(&f.Machines), "unhealthy": counted(&f.Unhealthy), "active": counted(&f.Active), "begun": func() error {
				n, err := strconv.Atoi(value)
				f.Starts = slices.Repeat([]time.Time{s.world.now}, n)
				return err
			},
			"passed": func() error {
				f.MassFailuresEnded = map[string]time.Time{domain: s.world.now.Add(-duration(d, t, number))}
				return nil
			},
			"unreadable": func() error { l.Unreadable = value; return nil },
			"pause": func() error {
				l.Paused = slices.DeleteFunc([]string{value}, func(s string) bool { return s == "" })
				return nil
			},
			"at-once": integer(&l.AtOnce, value), "domain-at-once": integer(&l.DomainAtOnce, value),
			"per-window":   func() error { l.Window = time.Hour; return integer(&l.PerWindow, value)() },
			"mass-failure": mass(&l.Mass), "domain-mass-failure": mass(&l.DomainMass),
		}[key])
	}
}

func set(t *testing.T, d *datadriven.TestData, what string, do func() error) {
	t.Helper()
	if do == nil {
		d.Fatalf(t, "%s: no such thing", what)
	} else if err := do(); err != nil {
		d.Fatalf(t, "%s: %v", what, err)
	}
}

func boolean(to *bool, value string) func() error {
	return func() error { *to = value != "off"; return nil }
}

func integer[T int | int32](to *T, value string) func() error {
	return func() error {
		n, err := strconv.Atoi(value)
		*to = T(n) //nolint:gosec // a handful
		return err
	}
}

func duration(d *datadriven.TestData, t *testing.T, text string) time.Duration {
	t.Helper()
	out, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return out
}

// status prints the status that users see, if it has changed.
func (s *story) status(b *strings.Builder) {
	if s.phases == nil {
		s.phases = make(map[types.UID]string)
	}
	for _, e := range s.log {
		marked, ok := e.event.(remediator.MachineMarked)
		if !ok {
			continue
		}
		uid, text := marked.Machine.UID, ""
		if status, ok := remediator.Status(&s.state, uid); ok {
			text = string(status.Phase)
			if status.Decision != "" {
				text += " [" + status.Decision + "]"
			}
			text += ": " + status.Message
			if status.Next != "" {
				text += " Next: " + status.Next
			}
		}
		if text != s.phases[uid] && text == "" {
			line(b, "%s has no remediation", marked.Machine.Name)
		} else if text != s.phases[uid] {
			line(b, "%s is %s", marked.Machine.Name, text)
		}
		s.phases[uid] = text
	}
}

// summary describes the resulting state.
func (s *story) summary() string {
	out := s.world.now.Sub(s.start).String() + ":"
	for _, m := range s.world.machines {
		out += " " + m.Name
		if m.DeleteAnnotation != "" {
			out += "*"
		}
		if m.Deleting {
			out += "(deleting)"
		} else if !s.world.isHealthy(m) {
			out += "(not well)"
		}
	}
	if wake := remediator.RequeueAfter(&s.state, s.observe(), s.world.now); wake > 0 {
		out += fmt.Sprintf("; looks again in %s", wake)
	}
	return out
}

// action formats an action as one line.
func action(a remediator.Action) string {
	out := string(a.Type)
	if a.Machine.Name != "" {
		out += " " + a.Machine.Name
	}
	if a.Type == remediator.Scale {
		return fmt.Sprintf("%s at the %s from %d to %d", a.Type, a.Where, a.Expect, a.Replicas)
	}
	if a.Value == "" {
		return out + " -"
	}
	return out + " " + a.Value
}

// recordedEvent is an event that is formatted only when it is printed.
type recordedEvent struct {
	event remediator.Event
	at    time.Time
}

func (f recordedEvent) String() string { return formatEvent(f.event, f.at) }

// formatEvent formats an event as one line.
func formatEvent(e remediator.Event, now time.Time) string {
	out := strings.TrimPrefix(fmt.Sprintf("%T", e), "remediator.")
	data, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return err.Error()
	}
	switch e := e.(type) {
	case remediator.EtcdReported:
		return formatReport(e)
	case remediator.DefragmentationStarted:
		return fmt.Sprintf("%s %s, leads %t, within %s, %s: %s", out, e.Before.Node, e.Leader, e.Until.Sub(now), e.Before, e.Reason)
	case remediator.DefragmentationEnded:
		return strings.TrimRight(fmt.Sprintf("%s %s %s: %s, then %s %s %s", out, e.Node, e.Outcome, e.Before, e.After, e.Reason, e.Next), " ")
	case remediator.NoSpaceDisarmed:
		return fmt.Sprintf("%s %s", out, e.Members)
	}
	delete(fields, "failureDomain") // of a mark: the failure domain of a machine does not change
	if d, ok := e.(remediator.Decided); ok {
		return formatDecision(d)
	}
	for _, key := range []string{"machine", "replacement"} {
		if subject, ok := fields[key].(map[string]any); ok {
			out += fmt.Sprintf(" %v", subject["name"])
			delete(fields, key)
		}
	}
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for key := range fields {
			if !yield(key) {
				return
			}
		}
	}) {
		switch v := fields[key].(type) {
		case string:
			if at, err := time.Parse(time.RFC3339, v); err == nil && (key == "since" || key == "until") {
				v = at.Sub(now).String()
			}
			out += fmt.Sprintf(" %s=%s", key, v)
		case []any:
			var names []string
			for _, one := range v {
				if subject, ok := one.(map[string]any); ok {
					names = append(names, fmt.Sprint(subject["name"]))
				}
			}
			out += fmt.Sprintf(" %s=%s", key, strings.Join(names, ","))
		default:
			out += fmt.Sprintf(" %s=%v", key, v)
		}
	}
	return out
}

func formatReport(e remediator.EtcdReported) string {
	out := "EtcdReported leader " + e.Leader
	if len(e.Learners) > 0 {
		out += ", learners " + strings.Join(e.Learners, ",")
	}
	for _, d := range e.Databases {
		out += fmt.Sprintf(", %s %s", d.Node, d)
	}
	s := &remediator.State{}
	s.Apply(e, time.Time{})
	for _, p := range remediator.EtcdStatus(s) {
		out += fmt.Sprintf("\n  %s: %s; next: %s", p.Problem, p.Message, p.Next)
	}
	return out
}

func formatDecision(e remediator.Decided) string {
	out := fmt.Sprintf("Decided %s %s", e.Machine.Name, e.Decision.Verdict)
	if e.Decision.Relaxed {
		out += " (relaxed)"
	}
	out += fmt.Sprintf(" by %s: %s", e.Decision.Rule, e.Decision.Reason)
	if e.Decision.Next != "" {
		out += " Next: " + e.Decision.Next
	}
	seen := e.Evidence
	out += fmt.Sprintf("\n  seen: replicas %d, machines %d, ready %d", seen.Replicas, seen.Machines, seen.Ready)
	for _, list := range []struct {
		word  string
		names []string
	}{{"broken", seen.Broken}, {"deleting", seen.Deleting}, {"silent", seen.Silent}} {
		if len(list.names) > 0 {
			out += fmt.Sprintf(", %s %s", list.word, strings.Join(list.names, " "))
		}
	}
	if seen.Voters > 0 {
		out += fmt.Sprintf(", voters %d", seen.Voters)
	}
	if seen.Learners > 0 {
		out += fmt.Sprintf(", learners %d", seen.Learners)
	}
	if seen.EtcdError != "" {
		out += ", etcd: " + seen.EtcdError
	}
	return out
}

func line(b *strings.Builder, format string, args ...any) {
	fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}
