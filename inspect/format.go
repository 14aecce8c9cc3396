package inspect

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/mvcc"
)

// moment is a timestamp and its time.
type moment struct {
	TS   uint64 `json:"ts"`   // up to 19 digits
	Time string `json:"time"` // RFC 3339, UTC, microseconds
}

func momentOf(ts mvcc.Timestamp) moment {
	return moment{uint64(ts), ts.Time().Format("2006-01-02T15:04:05.000000Z")}
}

// cut returns the beginning of a text that is longer than n characters.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return firstRunes(text, n-1) + "…"
}

// functions are the functions of templates. Those that return template.HTML print only numbers and
// constants in it.
func (s *server) functions() template.FuncMap {
	return template.FuncMap{
		// href PAGE NAME VALUE …: the URL of a page with parameters; those with empty values are
		// left out
		"href":      s.href,
		"formTable": s.formTable, // value of a field "table", for the name of a table
		"text":      celltext.Printable,
		"bytes":     bytesHTML,  // "1.2 MiB", exact in the title
		"count":     countHTML,  // "1,234"
		"share":     shareHTML,  // of a share from 0 to 1: "12.3 %"
		"amount":    amountHTML, // amount X UNIT: a size, if the unit is bytes
		"number":    numberHTML, // of a float64: "1,234.5"
		"time":      timeHTML,   // of a moment
		"duration":  duration,   // of a time.Duration
		"yes":       yes,        // of a bool
		"bar":       bar,        // bar SHARE: a bar that is SHARE (0 to 1) of its column long
		"stackOf":   stackOf,    // of a list of parts: one bar
		"partClass": partClass,
		"chart":     chart, // chart VALUES LEAST MOST: a line of values over time
		"deref":     deref, // the value of a pointer
		"budget":    budgetText,
		"add":       func(a, b int) int { return a + b },
		"plural":    plural,   // plural N NOUN
		"layoutOf":  layoutOf, // what the template "layout" takes
		"setsOf":    setsOf,   // what the template "sets" takes
	}
}

func (s *server) href(pattern string, pairs ...any) (string, error) {
	if len(pairs)%2 != 0 || pages[pattern] == nil {
		return "", fmt.Errorf("href %q: no such page, or a name without value", pattern)
	}
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if value := fmt.Sprint(pairs[i+1]); value != "" {
			values.Set(fmt.Sprint(pairs[i]), value)
		}
	}
	return s.address(pattern, values), nil
}

func bytesHTML(n int64) template.HTML {
	return template.HTML(fmt.Sprintf(`<data value="%d" title="%s bytes">%s</data>`, n,
		figures.Thousands(n), figures.Size(n)))
}

func countHTML(n any) template.HTML {
	v := int64(0)
	switch n := n.(type) {
	case int:
		v = int64(n)
	case int64:
		v = n
	case uint32:
		v = int64(n)
	case uint64:
		return template.HTML(strconv.FormatUint(n, 10))
	}
	return template.HTML(fmt.Sprintf(`<data value="%d">%s</data>`, v, figures.Thousands(v)))
}

// round rounds to some decimals, as JSON and pages show a number.
func round(x float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	if r := math.Round(x*scale) / scale; !math.IsNaN(r) && !math.IsInf(r, 0) {
		return r
	}
	return 0
}

// share rounds a share for JSON and bars.
func share(part, of int64) float64 {
	if of <= 0 {
		return 0
	}
	return round(float64(part)/float64(of), 4)
}

func shareHTML(x float64) template.HTML {
	digits := 1
	switch {
	case x > 0 && x < 0.0001:
		digits = 4
	case x > 0 && x < 0.001:
		digits = 3
	}
	return template.HTML(fmt.Sprintf(`<data value="%s">%s %%</data>`, plainFloat(x),
		strconv.FormatFloat(100*x, 'f', digits, 64)))
}

// plainFloat formats a number as encoding/json does.
func plainFloat(x float64) string {
	text, _ := json.Marshal(x)
	return string(text)
}

func numberHTML(x float64) template.HTML {
	whole, rest, _ := strings.Cut(strconv.FormatFloat(x, 'f', -1, 64), ".")
	n, _ := strconv.ParseInt(whole, 10, 64)
	text := figures.Thousands(n)
	if rest != "" {
		text = whole[:len(whole)-len(strings.TrimLeft(whole, "-"))] + figures.Thousands(max(n, -n)) + "." + rest
	}
	return template.HTML(fmt.Sprintf(`<data value="%s">%s</data>`, plainFloat(x), text))
}

// amountHTML formats a number of a unit.
func amountHTML(x float64, unit string) template.HTML {
	if !strings.HasPrefix(unit, "bytes") {
		return numberHTML(x)
	}
	return template.HTML(fmt.Sprintf(`<data value="%s">%s</data>`, plainFloat(x), figures.Size(int64(x))))
}

// deref returns the value of a pointer, which templates do not follow by themselves.
func deref(p any) any {
	switch p := p.(type) {
	case *int:
		return *p
	case *int64:
		return *p
	case *uint64:
		return *p
	}
	return p
}

// budgetText is a size in the form that figures.ParseSize reads.
func budgetText(n int64) string {
	for _, unit := range []string{"B", "KB", "MB"} {
		if n == 0 || n%1024 != 0 {
			return strconv.FormatInt(n, 10) + unit
		}
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + "GB"
}

func timeHTML(v any) template.HTML {
	m, ok := v.(moment)
	if p, pointer := v.(*moment); pointer {
		m, ok = *p, true
	}
	if !ok {
		return ""
	}
	short := strings.TrimSuffix(strings.Replace(m.Time, "T", " ", 1), "Z")
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="timestamp %d, UTC">%s</time>`, m.Time, m.TS, short))
}

// duration formats a duration with three digits, or in minutes and seconds.
func duration(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	unit, name := time.Nanosecond, "ns"
	for _, larger := range []struct {
		unit time.Duration
		name string
	}{{time.Microsecond, "µs"}, {time.Millisecond, "ms"}, {time.Second, "s"}} {
		if d >= larger.unit {
			unit, name = larger.unit, larger.name
		}
	}
	x, digits := float64(d)/float64(unit), 2
	for limit := 10.0; x >= limit && digits > 0; limit *= 10 {
		digits--
	}
	if unit == time.Nanosecond {
		digits = 0
	}
	return strconv.FormatFloat(x, 'f', digits, 64) + " " + name
}

// ageText formats an age in its largest unit, rounded down.
func ageText(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return plural(int64(d/(24*time.Hour)), "day")
	case d >= time.Hour:
		return plural(int64(d/time.Hour), "hour")
	}
	return plural(int64(d/time.Minute), "minute")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func plural(n any, noun string) string {
	v, _ := strconv.ParseInt(fmt.Sprint(n), 10, 64)
	if v == 1 {
		return "1 " + noun
	}
	return figures.Thousands(v) + " " + noun + "s"
}

// bar draws a horizontal bar. The page's style gives it size and color: the policy of the pages
// allows no style in elements.
func bar(share float64) template.HTML { return stack([]float64{share}, []int{1}) }

// stack draws the parts of a bar one after another, with the classes s1, s2, ….
func stack(shares []float64, classes []int) template.HTML {
	var b strings.Builder
	b.WriteString(`<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">`)
	x := 0.0
	for i, share := range shares {
		w := round(100*min(max(share, 0), 1), 2)
		if w > 0 {
			fmt.Fprintf(&b, `<rect class="s%d" x="%g" width="%g" height="10"/>`, classes[i], x, w)
		}
		x = round(x+w, 2)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// partClasses are the colors of parts that several pages and the picture of rowsets have.
var partClasses = map[string]int{"columns": 1, "redos": 2, "bloom filter": 3, "bloom filters": 3, "undos": 4,
	"key directory": 5, "key directories": 5,
	"key index": 6, "row file": 7, "row files": 7, "not yet counted": 9}

// partClass returns the number of the class of the i-th part of a list.
func partClass(i int, p part) int {
	if class, ok := partClasses[p.Name]; ok {
		return class
	}
	return i%12 + 1
}

// stackOf draws a sum as one bar.
func stackOf(list []part) template.HTML {
	var shares []float64
	var classes []int
	for i, p := range list {
		shares, classes = append(shares, p.Share), append(classes, partClass(i, p))
	}
	return stack(shares, classes)
}

// chart draws values over time.
func chart(values []float64, least, most float64) template.HTML {
	const w, h = 300.0, 60.0
	var line strings.Builder
	for i, v := range values {
		x, y := w*float64(i)/float64(max(len(values)-1, 1)), h/2
		switch {
		case most > least:
			y = h - (v-least)/(most-least)*h
		case most == 0:
			y = h
		}
		fmt.Fprintf(&line, "%c%g %g", "ML"[min(i, 1)], round(x, 1), round(y, 1))
	}
	return template.HTML(fmt.Sprintf(
		`<svg class="chart" viewBox="0 -3 %g %g" preserveAspectRatio="none" aria-hidden="true"><path class="area" d="%sL%g %gL0 %gz"/><path class="line" vector-effect="non-scaling-stroke" d="%s"/></svg>`,
		w, h+6, &line, w, h+3, h+3, &line))
}
