package act

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
)

const (
	// patience is how long one action may take: the way to the log, and a few calls.
	patience = time.Minute
	// tries bounds how often an action is tried when the status of its resource was written at the very moment.
	tries = 5
	// longest is how many characters a reason may have: as many as the resources keep.
	longest = 512
	// remembered is how many of the actions that were done last are not done again when their form is sent once more.
	remembered = 256
	// nonceBytes make two offers of the same action different.
	nonceBytes = 16
)

// Desk does what pages ask for. One thing is done at a time.
type Desk struct {
	kit    *kit.Kit
	secret []byte
	turn   chan struct{}
	spent  []string // tokens, the oldest first; who has the turn may use them
}

// New is a desk for the user of a kit. What was confirmed at another one is refused.
func New(k *kit.Kit) *Desk {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // it never fails
	return &Desk{kit: k, secret: secret, turn: make(chan struct{}, 1)}
}

// Offer is what would be done, with what, and what follows.
type Offer struct {
	Ask
	kit.Seen
	Kind, State, Message, Effect string
	// Reason says that a reason can be given, Needed that it must be, Timed that it may be for a time.
	Reason, Needed, Timed bool
	// Choices of which one must be chosen, if there are any.
	Choices []string
	// Command does the same; "" if scutectl has none.
	Command string
	// Token proves that this was shown.
	Token string
}

// Look reads the resource and says what would be done. An answer that the API server refuses is given in its words.
func (d *Desk) Look(ctx context.Context, ask Ask) (*Offer, error) {
	action := actions()[ask.Do+" "+ask.Kind]
	k := d.borrowed(ask.Namespace, &bytes.Buffer{})
	cluster, err := k.Flags.Cluster()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	object := action.object()
	if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: ask.Namespace, Name: ask.Name}, object); err != nil {
		return nil, cluster.Explain(err)
	}
	o := &Offer{
		Ask: ask, Seen: kit.Seen{UID: object.GetUID(), Generation: object.GetGeneration(), ID: ask.ID},
		Kind: fmt.Sprintf("%T", object), Effect: action.effect, Reason: action.reason, Needed: action.needed, Timed: action.timed,
	}
	o.Kind = o.Kind[strings.LastIndexByte(o.Kind, '.')+1:]
	var id string
	o.State, o.Message, id = stands(object)
	if err := o.Check(object, id); err != nil { // of the same name, and not what the page speaks of
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
	nonce := make([]byte, nonceBytes)
	_, _ = rand.Read(nonce) // it never fails
	o.Token = d.sign(ask, o.Seen, hex.EncodeToString(nonce))
	return o, nil
}

// Do does what was offered, and returns what the command says. seen and token are those of the offer. It is not ended with ctx: a
// browser that goes away, as at a second click, would leave open what was done.
func (d *Desk) Do(ctx context.Context, ask Ask, seen kit.Seen, token string, a Answer) (said []string, err error) {
	action := actions()[ask.Do+" "+ask.Kind]
	seen.ID = ask.ID
	switch {
	case len(token) < hex.EncodedLen(nonceBytes) || !hmac.Equal([]byte(token), []byte(d.sign(ask, seen, token[:hex.EncodedLen(nonceBytes)]))):
		return nil, fmt.Errorf("%w: this was not confirmed on a page of this server: look again", ErrAsk)
	case action.needed && strings.TrimSpace(a.Reason) == "":
		return nil, cli.Usagef("the reason is missing: say why; it is shown as long as it lasts")
	case utf8.RuneCountInString(a.Reason) > longest:
		return nil, cli.Usagef("the reason has %d characters: it must have %d or fewer", utf8.RuneCountInString(a.Reason), longest)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: what was asked for before is not done yet", ctx.Err())
	}
	defer func() { <-d.turn }()
	if slices.Contains(d.spent, token) {
		return nil, fmt.Errorf("%w: this form was sent before, and what it asks for was done then", kit.ErrChanged)
	}
	for range tries {
		var out bytes.Buffer
		err = action.do(ctx, d.borrowed(ask.Namespace, &out), &seen, ask.Name, a)
		said = strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
		if !apierrors.IsConflict(err) { // the status was written meanwhile: what was seen is held against the resource again
			break
		}
	}
	if err == nil {
		d.spent = append(d.spent[max(0, len(d.spent)-remembered+1):], token)
	}
	return said, err
}

// sign makes a token that is bound to what was shown, and to this desk. It begins with the nonce.
func (d *Desk) sign(ask Ask, seen kit.Seen, nonce string) string {
	data, _ := json.Marshal([]any{ask, seen, nonce}) // plain fields
	mac := hmac.New(sha256.New, d.secret)
	mac.Write(data)
	return nonce + hex.EncodeToString(mac.Sum(nil))
}

// borrowed is the kit of a command that is run for a page: it leads to the same place, and what it says is kept.
func (d *Desk) borrowed(namespace string, out *bytes.Buffer) *kit.Kit {
	env, flags := *d.kit.Env, *d.kit.Flags
	env.In, env.Out, env.Err, env.Color = strings.NewReader(""), out, out, cli.ColorNever
	flags.Namespace = namespace
	return &kit.Kit{Env: &env, Flags: &flags}
}
