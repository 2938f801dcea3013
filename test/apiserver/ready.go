package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"scute.dev/test/process"
)

// waitReady waits until the program answers at path with 200. It returns an error if the program exits.
func waitReady(ctx context.Context, p *process.Process, config *rest.Config, path string) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("waiting for %s%s: %w", config.Host, path, err)
	}
	defer client.CloseIdleConnections()
	client.Timeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		last := probe(ctx, client, config.Host+path)
		if last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return fmt.Errorf("waiting for %s%s: %w", config.Host, path, p.Exited())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s%s: %w (last answer: %w; see %s)", config.Host, path, context.Cause(ctx), last, p.Log())
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", response.Status)
	}
	return nil
}
