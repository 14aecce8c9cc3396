package harness

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Sizes of the plots, in pixels.
const (
	plotName  = 190 // width of the names on the left
	plotWide  = 520
	plotRight = 250 // width of the figures
	plotRow   = 20
	plotTop   = 34
)

const pageStyle = `body{font:15px/1.45 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#000;background:#fff}
svg{display:block;max-width:100%;height:auto;margin:.5em 0}svg text{font:12px sans-serif;fill:#000}
table{border-collapse:collapse;font-size:13px}td,th{padding:2px 8px;border-bottom:1px solid #bbb;text-align:right}
td:first-child,th:first-child,td.w,th.w{text-align:left}h2{font-size:17px;margin:2em 0 .2em}p{margin:.3em 0}.fail{font-weight:bold}`

// WritePage writes the report as one HTML page that refers to no other file: a plot of our best
// peer against the best other peer of each workload, then a table for each workload. Shapes are
// used instead of colors: a filled mark is ours, or better; a hollow one is not.
func (r *Report) WritePage(w io.Writer) error {
	var b strings.Builder
	title := "Benchmarks, scale " + r.Scale
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "+
		"content=\"width=device-width\"><title>%s</title><style>%s</style></head><body>\n<h1>%s</h1>\n",
		html.EscapeString(title), pageStyle, html.EscapeString(title))
	fmt.Fprintf(&b, "<p>%d rounds, %s, started %s.</p>\n", r.Rounds, html.EscapeString(r.Machine),
		r.Started.Format("2006-01-02 15:04 MST"))
	b.WriteString("<p>For each workload, the ratio of ours to the best other peer: the median of the rounds, with " +
		"minimum and maximum. To the right of the line, ours is better. The mark is filled if the median is above " +
		"1.</p>\n")
	r.plotRatios(&b)
	for i := range r.Workloads {
		r.Workloads[i].section(&b, r.Scale)
	}
	if len(r.Missing) > 0 {
		b.WriteString("<h2>Not run</h2>\n")
		for _, m := range r.Missing {
			fmt.Fprintf(&b, "<p>%s: %s</p>\n", html.EscapeString(m.Peer), html.EscapeString(m.Why))
		}
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// ratioRow is one workload in the plot of ratios.
type ratioRow struct {
	name, ours, other string
	speed             Spread
}

func (r *Report) ratioRows() (rows []ratioRow) {
	for i := range r.Workloads {
		w := &r.Workloads[i]
		ours, other := w.best(true), w.best(false)
		if ours == nil || other == nil {
			continue
		}
		if s := w.speed(ours, other); s.Least > 0 {
			rows = append(rows, ratioRow{w.Workload, ours.Peer, other.Peer, s})
		}
	}
	return rows
}

// logAxis maps ratios to pixels on a logarithmic scale.
type logAxis struct{ from, to float64 } // powers of ten

func axisOf(rows []ratioRow) logAxis {
	a := logAxis{-1, 1}
	for _, row := range rows {
		a.from = min(a.from, math.Floor(math.Log10(row.speed.Least)))
		a.to = max(a.to, math.Ceil(math.Log10(row.speed.Most)))
	}
	return a
}

func (a logAxis) x(v float64) float64 {
	return plotName + plotWide*(math.Log10(v)-a.from)/(a.to-a.from)
}

func (r *Report) plotRatios(b *strings.Builder) {
	rows := r.ratioRows()
	if len(rows) == 0 {
		b.WriteString("<p>No workload had another peer.</p>\n")
		return
	}
	a := axisOf(rows)
	high := plotTop + plotRow*len(rows) + 8
	openPlot(b, high, "ratio of ours to the best other peer, by workload")
	for p := a.from; p <= a.to; p++ {
		v := math.Pow(10, p)
		wide := 0.5
		if p == 0 {
			wide = 2
		}
		fmt.Fprintf(b,
			`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#000" stroke-width="%g"/><text x="%.1f" y="16" text-anchor="middle">%g ×</text>`+"\n",
			a.x(v), a.x(v), plotTop-12, high-4, wide, a.x(v), v)
	}
	for i, row := range rows {
		y := float64(plotTop + plotRow*i + plotRow/2)
		fill := "#fff"
		if row.speed.Median > 1 {
			fill = "#000"
		}
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, plotName-8,
			y+4, html.EscapeString(row.name))
		whisker(b, a.x(row.speed.Least), a.x(row.speed.Most), y)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4.5" fill="%s" stroke="#000" stroke-width="1.5"/>`,
			a.x(row.speed.Median), y, fill)
		fmt.Fprintf(b, `<text x="%d" y="%.1f">%s × %s, by %s</text>`+"\n", plotName+plotWide+12, y+4,
			number(row.speed.Median), html.EscapeString(row.other), html.EscapeString(row.ours))
	}
	b.WriteString("</svg>\n")
}

func openPlot(b *strings.Builder, high int, label string) {
	wide := plotName + plotWide + plotRight
	fmt.Fprintf(b, `<svg viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n", wide, high, wide,
		high, html.EscapeString(label))
}

// whisker draws a line with end marks.
func whisker(b *strings.Builder, from, to, y float64) {
	fmt.Fprintf(b, `<path d="M%.1f %.1fv8M%.1f %.1fH%.1fM%.1f %.1fv8" fill="none" stroke="#000" stroke-width="1.2"/>`,
		from, y-4, from, y, to, to, y-4)
}

// section prints one workload: a bar for each peer, with whiskers from minimum to maximum, and the
// table.
func (w *WorkloadResult) section(b *strings.Builder, scale string) {
	better := "less is better"
	if w.More {
		better = "more is better"
	}
	fmt.Fprintf(b, "<h2 id=\"%s\">%s</h2>\n<p>%s</p>\n<p>%s; %s.</p>\n", html.EscapeString(w.Workload),
		html.EscapeString(w.Workload), html.EscapeString(w.About), html.EscapeString(w.Unit), better)
	w.plotPeers(b)
	b.WriteString("<table><tr><th class=\"w\">peer</th><th>median</th><th>min</th><th>max</th><th>cpu s</th><th>peak " +
		"MiB</th><th>written MiB</th><th>disk MiB</th><th>busy</th><th class=\"w\">other</th></tr>\n")
	for i := range w.Peers {
		p := &w.Peers[i]
		if !p.measured() {
			continue
		}
		s := spreadOf(p.values(""))
		fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%.2f</td><td>%s</td>"+
			"<td>%s</td><td>%s</td><td>%d</td><td class=\"w\">%s</td></tr>\n", html.EscapeString(p.Peer),
			number(s.Median), number(s.Least), number(s.Most), p.median(func(m *Measurement) float64 {
				return m.CPU
			}), mebibytes(p.PeakBytes),
			mebibytes(int64(p.median(func(m *Measurement) float64 { return float64(m.Written) }))),
			mebibytes(int64(p.median(func(m *Measurement) float64 {
				return float64(m.DiskBytes)
			}))), p.busyRounds(), html.EscapeString(metrics(p)))
	}
	b.WriteString("</table>\n")
	for _, f := range w.Floors {
		fmt.Fprintf(b, "<p>%s %s: %s%s</p>\n", verdict(f.Met, scale), html.EscapeString(f.Floor),
			number(f.Got), ratioText(f.Ratio))
	}
	for _, line := range w.faults() {
		fmt.Fprintf(b, "<p class=\"fail\">%s</p>\n", html.EscapeString(line))
	}
}

func (w *WorkloadResult) plotPeers(b *strings.Builder) {
	most := 0.0
	n := 0
	for i := range w.Peers {
		if p := &w.Peers[i]; p.measured() {
			most, n = max(most, spreadOf(p.values("")).Most), n+1
		}
	}
	if most <= 0 {
		return
	}
	openPlot(b, plotRow*n+6, w.Workload+", by peer")
	x := func(v float64) float64 { return plotName + plotWide*v/most }
	row := 0
	for i := range w.Peers {
		p := &w.Peers[i]
		if !p.measured() {
			continue
		}
		y := float64(plotRow*row + plotRow/2 + 2)
		row++
		fill := "#fff"
		if p.Ours {
			fill = "#888"
		}
		s := spreadOf(p.values(""))
		fmt.Fprintf(b,
			`<text x="%d" y="%.1f" text-anchor="end">%s</text><rect x="%d" y="%.1f" width="%.1f" height="12" fill="%s" stroke="#000"/>`,
			plotName-8, y+4, html.EscapeString(p.Peer), plotName, y-6, max(0.5, x(s.Median)-plotName), fill)
		whisker(b, x(s.Least), x(s.Most), y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f">%s %s</text>`+"\n", plotName+plotWide+12, y+4,
			number(s.Median), html.EscapeString(w.Unit))
	}
	b.WriteString("</svg>\n")
}
