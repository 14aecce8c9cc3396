package metrics

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Text builds the text format of Prometheus, version 0.0.4:
// https://prometheus.io/docs/instrumenting/exposition_formats/. All samples of a family follow its
// head:
//
//	t.Family("oribi_rows_total", "counter", "Rows written.")
//	t.Int(rows, "table", name)
//
// The zero value is ready to use.
type Text struct {
	out  []byte
	name string // of the current family
}

// Bytes returns the text.
func (t *Text) Bytes() []byte { return t.out }

// Family begins a family of samples. kind is counter, gauge or histogram.
func (t *Text) Family(name, kind, help string) {
	t.name = name
	t.out = append(t.out, "# HELP "+name+" "+helpEscaper.Replace(help)+"\n# TYPE "+name+" "+kind+"\n"...)
}

var (
	helpEscaper  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// Int appends a sample. labels are names and values in turn.
func (t *Text) Int(value int64, labels ...string) {
	t.head("", labels)
	t.out = append(strconv.AppendInt(t.out, value, 10), '\n')
}

// Float appends a sample.
func (t *Text) Float(value float64, labels ...string) {
	t.head("", labels)
	t.float(value)
}

// Seconds appends a sample of a duration, in seconds.
func (t *Text) Seconds(d time.Duration, labels ...string) { t.Float(d.Seconds(), labels...) }

func (t *Text) float(value float64) {
	switch {
	case math.IsInf(value, 1):
		t.out = append(t.out, "+Inf\n"...)
	case math.IsInf(value, -1):
		t.out = append(t.out, "-Inf\n"...)
	default:
		t.out = append(strconv.AppendFloat(t.out, value, 'g', -1, 64), '\n')
	}
}

// head appends the name with a suffix, and the labels.
func (t *Text) head(suffix string, labels []string) {
	t.out = append(append(t.out, t.name...), suffix...)
	for i := 0; i < len(labels); i += 2 {
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		t.out = append(append(append(t.out, sep), labels[i]...), `="`...)
		t.out = append(append(t.out, labelEscaper.Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD"))...), '"')
	}
	if len(labels) > 0 {
		t.out = append(t.out, '}')
	}
	t.out = append(t.out, ' ')
}

// Histogram appends the samples of a histogram of durations: buckets with cumulative counts, whose
// bounds are the powers of two, in seconds; the sum; the count. counts are by bucket, as Load
// returns them.
func (t *Text) Histogram(counts []int64, sum time.Duration, labels ...string) {
	var below int64
	bucket := func(le string) {
		t.head("_bucket", append(labels[:len(labels):len(labels)], "le", le))
		t.out = append(strconv.AppendInt(t.out, below, 10), '\n')
	}
	for i, n := range counts {
		below += n
		if bound := Bound(i); bound&(bound-1) == 0 {
			bucket(strconv.FormatFloat(bound.Seconds(), 'g', -1, 64))
		}
	}
	bucket("+Inf")
	t.head("_sum", labels)
	t.float(sum.Seconds())
	t.head("_count", labels)
	t.out = append(strconv.AppendInt(t.out, below, 10), '\n')
}
