package ui

import (
	"bufio"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"scute.dev/eventlog"
	"scute.dev/ui/uitest"
)

// TestAnOpenPageSaysWhatItCannotShow checks that an open page is replaced by an error when its run gets an event that
// this program cannot read.
func TestAnOpenPageSaysWhatItCannotShow(t *testing.T) {
	all := records(t)
	f := uitest.Feed(t)
	for _, r := range all {
		if err := f.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		dial := serveFeed(t, f)
		c := dial()
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET /live/run?id=fleet%%2Fdecided-to-retry%%2F1 HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nCookie: scute-ui-4711=%s\r\n\r\n", host, token); err != nil {
			t.Fatal(err)
		}
		open := bufio.NewReader(c)
		if err := until(open, "</main>"); err != nil {
			t.Fatal(err)
		}
		newer := eventlog.NewRecord(f.Commits.Head()+1, time.Now(), all[0].Subject(), nil, []byte("of a newer scute"))
		if err := f.Apply(newer); err != nil {
			t.Fatal(err)
		}
		if err := until(open, "cannot be read"); err != nil {
			t.Errorf("the page still shows the earlier state: %v", err)
		}
	})
}
