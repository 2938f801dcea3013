package ui

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
	"scute.dev/ui/page"
)

const (
	// actionTimeout is the timeout of one action: the connection to the log, and a few calls.
	actionTimeout = time.Minute
	// maxAttempts limits the attempts at an action whose resource was updated concurrently.
	maxAttempts = 5
	// maxReasonLength is the maximum number of characters of a reason. It is the limit of the resources.
	maxReasonLength = 512
	// maxTokens is the number of tokens kept to refuse a form that is submitted twice.
	maxTokens = 256
	// nonceBytes is the length of the nonce that distinguishes two offers of the same action.
	nonceBytes = 16
)

// desk performs the actions that pages request, one at a time.
type desk struct {
	kit        *kit.Kit
	secret     []byte
	sem        chan struct{}
	usedTokens []string // used tokens, oldest first; guarded by turn
}

// newDesk returns a desk for the user of a kit. It refuses tokens of other desks.
func newDesk(k *kit.Kit) *desk {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	return &desk{kit: k, secret: secret, sem: make(chan struct{}, 1)}
}

// offer reads the resource and returns the offer of an action. It returns the error of the API server if the request is refused.
func (d *desk) offer(ctx context.Context, ask kit.Action) (*page.Offer, error) {
	action := actions()[ask.Do+" "+ask.Kind]
	k := d.kitFor(ask.Namespace, &bytes.Buffer{})
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
	o := &page.Offer{
		Action: ask, Seen: kit.Seen{UID: object.GetUID(), Generation: object.GetGeneration(), ID: ask.ID},
		Kind: fmt.Sprintf("%T", object), Effect: action.effect, Reason: action.reason, Needed: action.needed, Timed: action.timed,
	}
	o.Kind = o.Kind[strings.LastIndexByte(o.Kind, '.')+1:]
	var id string
	o.State, o.Message, id = stateOf(object)
	if err := o.Check(object, id); err != nil { // the name now belongs to another object
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
	_, _ = rand.Read(nonce) // never fails
	o.Token = d.sign(ask, o.Seen, hex.EncodeToString(nonce))
	return o, nil
}

// do performs the offered action and returns the command's output. seen and token are from the offer. do ignores cancellation of ctx; otherwise a
// disconnecting browser (a double click) would leave the outcome unknown.
func (d *desk) do(ctx context.Context, ask kit.Action, seen kit.Seen, token string, a answer) (said []string, err error) {
	action := actions()[ask.Do+" "+ask.Kind]
	seen.ID = ask.ID
	switch {
	case len(token) < hex.EncodedLen(nonceBytes) || !hmac.Equal([]byte(token), []byte(d.sign(ask, seen, token[:hex.EncodedLen(nonceBytes)]))):
		return nil, fmt.Errorf("%w: it was not confirmed on a page of this server; reload the page", errInvalidRequest)
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
		return nil, fmt.Errorf("%w: an earlier action is still in progress", ctx.Err())
	}
	defer func() { <-d.sem }()
	if slices.Contains(d.usedTokens, token) {
		return nil, fmt.Errorf("%w: this form was already sent, and its action was carried out then", kit.ErrChanged)
	}
	for range maxAttempts {
		var out bytes.Buffer
		err = action.perform(ctx, d.kitFor(ask.Namespace, &out), &seen, ask.Name, a)
		said = strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
		if !apierrors.IsConflict(err) { // if the status was updated concurrently, seen is compared with the resource again
			break
		}
	}
	if err == nil {
		d.usedTokens = append(d.usedTokens[max(0, len(d.usedTokens)-maxTokens+1):], token)
	}
	return said, err
}

// sign returns a token for the shown offer, which only this desk accepts. It begins with the nonce.
func (d *desk) sign(ask kit.Action, seen kit.Seen, nonce string) string {
	data, _ := json.Marshal([]any{ask, seen, nonce}) // plain fields never fail
	mac := hmac.New(sha256.New, d.secret)
	mac.Write(data)
	return nonce + hex.EncodeToString(mac.Sum(nil))
}

// kitFor returns a kit for running a command with the same connection flags. The command's output is written to out.
func (d *desk) kitFor(namespace string, out *bytes.Buffer) *kit.Kit {
	env, flags := *d.kit.Env, *d.kit.Flags
	env.In, env.Out, env.Err, env.Color = strings.NewReader(""), out, out, cli.ColorNever
	flags.Namespace = namespace
	return &kit.Kit{Env: &env, Flags: &flags}
}
