package eventlog

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// hookedJetStream is a JetStream client that calls the function before ahead of each request.
type hookedJetStream struct {
	jetstream.JetStream
	before func(what string)
}

func (h hookedJetStream) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	h.before("stream " + name)
	return h.JetStream.Stream(ctx, name)
}

func (h hookedJetStream) CreateStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	h.before("create " + c.Name)
	return h.JetStream.CreateStream(ctx, c)
}

func (h hookedJetStream) UpdateStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	h.before("update " + c.Name)
	return h.JetStream.UpdateStream(ctx, c)
}

func (h hookedJetStream) DeleteStream(ctx context.Context, name string) error {
	h.before("delete " + name)
	return h.JetStream.DeleteStream(ctx, name)
}

// RestoreHooked restores as RestoreExternal does, and calls the function before ahead of each
// request.
func RestoreHooked(ctx context.Context, o ExternalOptions, r RestoreSource, before func(what string)) error {
	nc, err := nats.Connect(o.URL)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		return err
	}
	return restoreAt(ctx, nc, hookedJetStream{js, before}, o.spec(), r)
}
