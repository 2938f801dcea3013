package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"scute.dev/cmd/ctl/cli"
)

func TestTableKeepsToTheWidth(t *testing.T) {
	table := cli.Table{Header: []string{"OBJECT", "WHY"}, Wrap: 1, Indent: "  "}
	table.Add("Machine prod-1", "its provider still holds it with an annotation")
	table.Add("Cluster prod", "short")
	want := []string{
		"  OBJECT          WHY",
		"  Machine prod-1  its provider still",
		"                  holds it with an",
		"                  annotation",
		"  Cluster prod    short",
	}
	if diff := cmp.Diff(want, table.Lines(cli.Paint{}, 38)); diff != "" {
		t.Error(diff)
	}
	for _, line := range table.Lines(cli.Paint{}, 0)[1:] {
		if strings.Contains(line, "Machine") && !strings.Contains(line, "annotation") {
			t.Errorf("wrapped with unlimited width: %q", line)
		}
	}
}

// TestTableOfManyColumnsKeepsToTheWidth checks that the last columns are printed below the row if wrapping is not
// enough.
func TestTableOfManyColumnsKeepsToTheWidth(t *testing.T) {
	table := cli.Table{Header: []string{"AGGREGATE", "COMMITS", "LAST EVENT", "PHASE"}, Indent: "  "}
	table.Add("run/default/order/1", "5", "2026-11-27 09:41:49Z", "Succeeded")
	table.Add("run/default/pause/1", "12", "2026-11-27 09:41:50Z", "")
	want := []string{
		"  AGGREGATE            COMMITS",
		"  run/default/order/1  5",
		"      LAST EVENT  2026-11-27",
		"                  09:41:49Z",
		"      PHASE  Succeeded",
		"  run/default/pause/1  12",
		"      LAST EVENT  2026-11-27",
		"                  09:41:50Z",
	}
	if diff := cmp.Diff(want, table.Lines(cli.Paint{}, 36)); diff != "" {
		t.Error(diff)
	}
	wrapped := cli.Table{Header: []string{"FACT", "DETAIL", "ACTOR"}, Wrap: 2}
	wrapped.Add("run requested", "policy Abort, definition 1bf2acb36fa8", "daemon/scutectl-vm-30371-zkwm2dzr")
	for width := 27; width < 120; width++ {
		for _, line := range wrapped.Lines(cli.Paint{}, width) {
			if cli.Width(line) > width {
				t.Errorf("with %d columns: got %q", width, line)
			}
		}
	}
	if got := len(wrapped.Lines(cli.Paint{}, 49)); got != 1+3 { // everything is in the row while it fits
		t.Errorf("got %d lines with 49 columns: %q", got, wrapped.Lines(cli.Paint{}, 49))
	}
}

func TestColorsTakeNoRoom(t *testing.T) {
	paint := cli.Paint{On: true}
	red := paint.Text(cli.Red, "problem")
	if got := cli.Width(red); got != len("problem") {
		t.Errorf("Width = %d for %q", got, red)
	}
	if got, want := cli.Fit(red+" and more", 5), "\x1b[31mprob…\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (cli.Paint{}).Text(cli.Red, "problem"); got != "problem" {
		t.Errorf("colored without Paint.On: %q", got)
	}
}

func TestFitAndWrapNeverExceedTheWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-zäß ]{0,60}`).Draw(t, "text")
		width := rapid.IntRange(1, 40).Draw(t, "width")
		if got := cli.Width(cli.Fit(s, width)); got > width {
			t.Fatalf("Fit returned %d columns, want at most %d", got, width)
		}
		lines := cli.Wrap(s, width)
		for _, line := range lines {
			if cli.Width(line) > width {
				t.Fatalf("Wrap returned %q, which is wider than %d", line, width)
			}
		}
		if got, want := strings.Join(strings.Fields(strings.Join(lines, "")), ""), strings.Join(strings.Fields(s), ""); got != want {
			t.Fatalf("Wrap returned the text %q, want %q", got, want)
		}
	})
}

// TestCleanKeepsTheOrderOfWhatIsRead checks that characters that change the direction of text are removed, because they
// could disguise a name or a command.
func TestCleanKeepsTheOrderOfWhatIsRead(t *testing.T) {
	for _, r := range "\u061c\u200e\u200f\u202a\u202e\u2028\u2029\u2066\u2069" {
		if got := cli.Clean("a" + string(r) + "b"); got != "a b" {
			t.Errorf("%U: got %q", r, got)
		}
	}
	if got := cli.Clean("prüfen שלום 検査"); got != "prüfen שלום 検査" {
		t.Errorf("Clean changed letters: %q", got)
	}
}

func TestCleanDisarmsWhatATerminalWouldObey(t *testing.T) {
	if got := cli.Clean("a\x1b[2Jb\r\nc\u009bd"); strings.ContainsAny(got, "\x1b\r\n\u009b") {
		t.Errorf("Clean = %q", got)
	}
}

func TestSafeKeepsTheColorsOfPaintAlone(t *testing.T) {
	red := cli.Paint{On: true}.Text(cli.Red, "red")
	if got, want := cli.Safe(red+" \x1b[2J\x1b[7mgone\x1b]0;t\x07\x1b[\n"+red), red+"  [2J [7mgone ]0;t  [ "+red; got != want {
		t.Errorf("Safe = %q, want %q", got, want)
	}
}

func TestScreenDrawsInPlace(t *testing.T) {
	var out strings.Builder
	screen := cli.Screen{Out: &out, Size: func(any) (int, int, bool) { return 10, 5, true }}
	if err := screen.Draw([]string{"one", "a line that is too long\n"}); err != nil {
		t.Fatal(err)
	}
	if err := screen.Draw([]string{"1", "2", "3", "4", "5", "6"}); err != nil {
		t.Fatal(err)
	}
	want := "\r\x1b[2Kone\n\x1b[2Ka line th…\n\x1b[J" + // the first time nothing is above
		"\x1b[2A\r\x1b[2K1\n\x1b[2K2\n\x1b[2K3\n\x1b[2K… 3 more …\n\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		done, total int
		want        string
	}{{0, 0, "░░░░"}, {0, 3, "░░░░"}, {2, 4, "██░░"}, {3, 4, "███░"}, {4, 4, "████"}, {9, 4, "████"}, {-1, 4, "░░░░"}} {
		if got := cli.Bar(cli.Paint{}, cli.Cyan, c.done, c.total, 4); got != c.want {
			t.Errorf("Bar(%d of %d) = %s, want %s", c.done, c.total, got, c.want)
		}
	}
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "just now", -time.Hour: "just now", 2 * time.Second: "2s ago", 192 * time.Second: "3m12s ago", 26 * time.Hour: "26h ago",
	} {
		if got := cli.Ago(now, now.Add(-d)); got != want {
			t.Errorf("Ago(%s) = %q, want %q", d, got, want)
		}
	}
	if got := cli.Exact(now.In(time.FixedZone("", 3600))); got != "2026-07-30T12:00:00.000Z" {
		t.Error(got)
	}
}
