package eventlog

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// hooked is a server whose client tells of each request before it is made.
type hooked struct {
	jetstream.JetStream
	before func(what string)
}

func (h hooked) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	h.before("stream " + name)
	return h.JetStream.Stream(ctx, name)
}

func (h hooked) StreamNames(ctx context.Context, o ...jetstream.StreamListOpt) jetstream.StreamNameLister {
	h.before("names")
	return h.JetStream.StreamNames(ctx, o...)
}

func (h hooked) CreateStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	h.before("create " + c.Name)
	return h.JetStream.CreateStream(ctx, c)
}

func (h hooked) UpdateStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	h.before("update " + c.Name)
	return h.JetStream.UpdateStream(ctx, c)
}

func (h hooked) DeleteStream(ctx context.Context, name string) error {
	h.before("delete " + name)
	return h.JetStream.DeleteStream(ctx, name)
}

// ConnectHooked is Connect.
func ConnectHooked(ctx context.Context, o ExternalOptions, before func(what string)) (*Log, error) {
	nc, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		return nil, err
	}
	l := &Log{nc: nc, js: hooked{js, before}, logger: discardIfNil(nil), spec: o.spec()}
	l.denials.listen(nc)
	if err := l.start(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return l, nil
}

// RestoreHooked is RestoreExternal.
func RestoreHooked(ctx context.Context, o ExternalOptions, r Restored, before func(what string)) error {
	nc, err := nats.Connect(o.URL)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		return err
	}
	return restoreAt(ctx, nc, hooked{js, before}, o.spec(), r)
}
