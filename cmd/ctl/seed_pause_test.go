package main

import (
	"context"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/request"
)

// pauseEvents returns the events of a Pause of two clusters, one by name and one by label. In the
// Pause named unanswered, a Machine never acknowledges.
func pauseEvents(name string) []request.Event {
	if name != "maintenance" && name != "unanswered" {
		return nil
	}
	prod, north, machine := ref(object.CoreGroup, "Cluster", "prod"), ref(object.CoreGroup, "Cluster", "north"), ref(object.CoreGroup, "Machine", "prod-1")
	silent := request.Pending{
		Objects: []pause.PendingObject{{Ref: machine, Reason: "condition Paused is False"}}, Total: 1, Clusters: map[string]int{"prod": 1}, Kinds: map[string]int{machine.GroupKind(): 1},
	}
	ack := func(cluster string, how pause.Signal) request.Ack {
		return request.Ack{How: how, Cluster: cluster, After: pause.Duration(300 * time.Millisecond)}
	}
	events := []request.Event{
		request.Requested{Spec: request.Spec{
			Namespace: "fleet", Name: name, UID: "0a1b2c3d-0000", Clusters: []string{"prod"}, Selector: "region=north", BySelector: true,
			Reason: "maintenance of the network", Acknowledge: pause.Duration(time.Minute), Resume: pause.Duration(time.Minute),
		}},
		request.Claimed{Holder: "test-1"},
		request.Intended{Roots: []pause.Root{{Ref: prod, UID: "1"}, {Ref: north, UID: "2", Found: true}}},
		request.Paused{Roots: []object.Ref{prod, north}},
		request.Acknowledged{Objects: map[object.Ref]request.Ack{prod: ack("prod", pause.ByCondition), north: ack("north", pause.AlreadyPaused)}},
		request.Waiting{Pending: silent},
		request.TimedOut{Objects: silent.Objects, Total: 1},
	}
	if name == "maintenance" {
		events = append(events, request.Acknowledged{Objects: map[object.Ref]request.Ack{machine: ack("prod", pause.ByCondition)}}, request.AllAcknowledged{Objects: 3})
	}
	return append(events, request.ReleaseRequested{Reason: "the Pause was deleted"}, request.Restored{}, request.Released{})
}

// appendPauseStory appends the events of a Pause, one commit each.
func appendPauseStory(ctx context.Context, log *eventlog.Log, name string, events []request.Event, now func() time.Time) error {
	root := aggregate.Root[request.Event, *request.State]{
		Log: log, Catalog: request.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindPause, ID: "fleet/" + name + "/0a1b2c3d"},
		Actor: "daemon/test-1", Now: now, Links: request.Links, State: &request.State{},
	}
	for _, e := range events {
		if err := root.Append(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
