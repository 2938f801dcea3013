package ui

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/ui/page"
)

const (
	// actionTimeout limits an action, including the connection to the log and a few calls.
	actionTimeout = time.Minute
	// maxAttempts limits the attempts at an action. An attempt fails if the resource is updated at the
	// same time.
	maxAttempts = 5
	// maxReasonLength is the maximum length of a reason, in characters. The resources have the same
	// limit.
	maxReasonLength = 512
	// maxForms is the number of forms that are remembered after they were sent.
	maxForms = 256
)

// desk performs the actions that pages request, one at a time.
type desk struct {
	kit  *kit.Kit
	sem  chan struct{}
	sent []string // forms whose actions were performed, oldest first; guarded by sem
}

func newDesk(k *kit.Kit) *desk { return &desk{kit: k, sem: make(chan struct{}, 1)} }

// offer reads the resource and describes the action on it.
func (d *desk) offer(ctx context.Context, ask kit.Action) (*page.Offer, error) {
	action := actions()[ask.Do+" "+ask.Kind]
	k := d.kitFor(ask.Namespace, &bytes.Buffer{})
	cluster, err := k.Flags.Cluster()
	if err != nil {
		return nil, err
	}
	object := action.object()
	if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: ask.Namespace, Name: ask.Name}, object); err != nil {
		return nil, cluster.Explain(err)
	}
	o := &page.Offer{
		Action: ask, Seen: kit.Seen{UID: object.GetUID(), Generation: object.GetGeneration(), ID: ask.ID},
		Form: rand.Text(), Kind: fmt.Sprintf("%T", object), Effect: action.effect, Reason: action.reason, Needed: action.needed, Timed: action.timed,
	}
	o.Kind = o.Kind[strings.LastIndexByte(o.Kind, '.')+1:]
	var id string
	o.State, o.Message, id = stateOf(object)
	if err := o.Check(object, id); err != nil { // another object may have the name now
		return nil, err
	}
	if policy, ok := object.(*v1alpha1.RepairPolicy); ok && ask.Do == "resume" {
		if o.Choices = policy.Spec.PauseRequests; len(o.Choices) == 0 {
			return nil, fmt.Errorf("%w: RepairPolicy %s/%s has no pause request", kit.ErrChanged, ask.Namespace, ask.Name)
		}
	}
	if action.command != "" {
		o.Command = d.kit.Hint(ask.Namespace, append(strings.Fields(action.command), ask.Name)...)
	}
	return o, nil
}

// do performs the offered action once, and returns the output of the command. It refuses the action
// if the resource has changed since the offer. It also refuses it if the form was sent before,
// because an action such as pausing a run in the log does not change the resource. do ignores the
// cancellation of ctx: otherwise the outcome would be unknown if the browser disconnects, for
// example after a double click.
func (d *desk) do(ctx context.Context, ask kit.Action, seen kit.Seen, form string, a answer) (said []string, err error) {
	action := actions()[ask.Do+" "+ask.Kind]
	seen.ID = ask.ID
	switch {
	case form == "":
		return nil, fmt.Errorf("%w: the form is incomplete", errInvalidRequest)
	case action.needed && strings.TrimSpace(a.reason) == "":
		return nil, cli.Usagef("the reason is missing: give a reason; it is shown while the policy is paused")
	case utf8.RuneCountInString(a.reason) > maxReasonLength:
		return nil, cli.Usagef("the reason has %d characters: it must have %d or fewer", utf8.RuneCountInString(a.reason), maxReasonLength)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actionTimeout)
	defer cancel()
	select {
	case d.sem <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("an earlier action is still in progress: %w", ctx.Err())
	}
	defer func() { <-d.sem }()
	if slices.Contains(d.sent, form) {
		return nil, fmt.Errorf("%w: this form was already sent, and its action was carried out then", kit.ErrChanged)
	}
	for range maxAttempts {
		var out bytes.Buffer
		err = action.perform(ctx, d.kitFor(ask.Namespace, &out), &seen, ask.Name, a)
		said = strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
		if !apierrors.IsConflict(err) { // after a concurrent status update, seen is compared with the resource again
			break
		}
	}
	if err == nil {
		d.sent = append(d.sent[max(0, len(d.sent)-maxForms+1):], form)
	}
	return said, err
}

// kitFor returns a kit that has the same connection flags and writes all output to out.
func (d *desk) kitFor(namespace string, out *bytes.Buffer) *kit.Kit {
	env, flags := *d.kit.Env, *d.kit.Flags
	env.In, env.Out, env.Err, env.Color = strings.NewReader(""), out, out, cli.ColorNever
	flags.Namespace = namespace
	return &kit.Kit{Env: &env, Flags: &flags}
}
