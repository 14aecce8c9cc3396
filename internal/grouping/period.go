package grouping

import (
	"fmt"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/calendar"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// Key is a column by which rows are grouped, or the period of its times.
type Key struct {
	Column   string
	ByPeriod bool   // else by the values themselves
	Period   string // a key of periodLayouts, or an error
}

func (k Key) String() string {
	if !k.ByPeriod {
		return k.Column
	}
	return k.Period + "(" + k.Column + ")"
}

// periodLayouts are the periods, and the texts of them: the beginnings of an RFC 3339 time.
var periodLayouts = map[string]string{"year": "2006", "month": "2006-01", "day": "2006-01-02", "hour": "2006-01-02T15"}

// periodKey is a column that is computed from the times of a column that is read: the numbers of
// their periods, which ascend with time.
type periodKey struct {
	column int // of the batches
	typ    schema.Type
	period string
}

// bindPeriod returns the computed column of a key, and the column of the result.
func bindPeriod(k Key, column int, in *schema.Column) (p periodKey, out schema.Column, err error) {
	if periodLayouts[k.Period] == "" {
		return p, out, fmt.Errorf("%v: unknown period %q%s: %w", k, k.Period,
			nearest.Hint(k.Period, nearest.Keys(periodLayouts)), fault.ErrSchema)
	}
	if in.Type != schema.Timestamp && in.Type != schema.Date {
		return p, out, fmt.Errorf("%v: want a column of type timestamp or date, not %s: %w", k, in.TypeName(),
			fault.ErrSchema)
	}
	return periodKey{column, in.Type, k.Period}, schema.Column{Name: k.String(), Type: schema.String,
		Nullable: in.Nullable}, nil
}

// numbers returns the numbers of the periods of v.
func (p *periodKey) numbers(v *batch.Vector) *batch.Vector {
	out := batch.NewVector(schema.Int64, v.Len)
	out.Present = v.Present
	numbers := batch.Values[int64](out)
	if p.typ == schema.Date {
		for i, day := range batch.Values[int32](v) {
			numbers[i] = int64(day)
		}
	} else {
		unit := int64(calendar.DayMicros)
		if p.period == "hour" {
			unit /= 24
		}
		for i, t := range batch.Values[int64](v) {
			numbers[i], _ = calendar.FloorDiv(t, unit)
		}
	}
	switch {
	case p.period == "hour" && p.typ == schema.Date:
		for i := range numbers {
			numbers[i] *= 24
		}
	case p.period == "month" || p.period == "year":
		last, number := int64(0), p.ofDay(0)
		for i, day := range numbers {
			if day != last { // times are often close to each other
				last, number = day, p.ofDay(day)
			}
			numbers[i] = number
		}
	}
	return out
}

// ofDay returns the number of the month or year of a day since 1970.
func (p *periodKey) ofDay(day int64) int64 {
	year, month, _ := dayTime(day).Date()
	if p.period == "year" {
		return int64(year)
	}
	return int64(year)*12 + int64(month-time.January)
}

func dayTime(day int64) time.Time { return time.Unix(day*24*60*60, 0).UTC() }

// text returns the text of the period with a number.
func (p *periodKey) text(number int64) string {
	var t time.Time
	switch p.period {
	case "year":
		t = time.Date(int(number), time.January, 1, 0, 0, 0, 0, time.UTC)
	case "month":
		year, month := calendar.FloorDiv(number, 12)
		t = time.Date(int(year), time.January+time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	case "day":
		t = dayTime(number)
	default:
		t = time.Unix(number*60*60, 0).UTC()
	}
	return t.Format(periodLayouts[p.period])
}

// withPeriods returns b with the computed columns after its own.
func (q *Query) withPeriods(b *batch.RecordBatch) *batch.RecordBatch {
	if len(q.periods) == 0 {
		return b
	}
	more := *b
	more.Columns = append([]*batch.Vector{}, b.Columns...)
	for i := range q.periods {
		more.Columns = append(more.Columns, q.periods[i].numbers(b.Columns[q.periods[i].column]))
	}
	return &more
}

// inputs returns the columns of the batches that the engines take.
func (q *Query) inputs() []schema.Column {
	list := append([]schema.Column{}, q.read...)
	for range q.periods {
		list = append(list, schema.Column{Type: schema.Int64, Nullable: true})
	}
	return list
}

// keyValue returns the value of key i of a group.
func (q *Query) keyValue(i int, cell []byte) any {
	if k := q.keys[i] - len(q.read); k >= 0 && cell != nil {
		number, _ := bind.Value(&schema.Column{Type: schema.Int64}, cell).(int64)
		return q.periods[k].text(number)
	}
	return bind.Value(&q.columns[i], cell)
}
