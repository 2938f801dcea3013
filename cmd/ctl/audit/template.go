package audit

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	text "text/template"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

const (
	formatMarkdown = "markdown"
	formatHTML     = "html"
)

//go:embed report.md.tmpl report.html.tmpl
var templates embed.FS

var functions = template.FuncMap{
	"exact": cli.Exact, "second": cli.Second, "sequences": sequences, "cell": cell, "clean": cli.Clean, "actor": kit.Actor,
}

// write writes Markdown by default.
func (r *auditReport) write(w io.Writer, format string) error {
	if format == formatHTML {
		return template.Must(template.New("report.html.tmpl").Funcs(functions).ParseFS(templates, "report.html.tmpl")).Execute(w, r)
	}
	return text.Must(text.New("report.md.tmpl").Funcs(functions).ParseFS(templates, "report.md.tmpl")).Execute(w, r)
}

func sequences(r kit.EventRow) string {
	if r.Commits > 1 {
		return fmt.Sprintf("%d-%d", r.Seq, r.Last)
	}
	return fmt.Sprint(r.Seq)
}

// cell escapes a text for Markdown, also within tables.
func cell(s string) string { return markdown.Replace(cli.Clean(s)) }

var markdown = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "#", `\#`, "<", "&lt;", ">", "&gt;", "&", "&amp;",
)
