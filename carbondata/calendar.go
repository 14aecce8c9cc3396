package carbondata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/calendar"
	"github.com/oribi-db/oribi/schema"
)

// CarbonData's SDK reads and prints dates in the calendar of java.util.GregorianCalendar: Julian up
// to 1582-10-04, Gregorian from the next day on, 1582-10-15. Stored are the days that have passed
// since 1970-01-01. Everything outside of files has the proleptic Gregorian calendar, where a date
// before the switch is another number of days; values are converted so that the date stays.
//
// Times have the same calendar, at midnight UTC. Inside of this package, up to the values and the
// vectors that a scan returns, and from where a Writer adds values on, days and times are as
// stored: filters, minima, and maxima compare these. Both orders are the same.
const (
	switchDay  = calendar.Switch
	gapDays    = calendar.Gap
	firstDay   = -719162 // 0001-01-01, Gregorian
	lastDay    = 2932896 // 9999-12-31
	dayMillis  = 24 * 60 * 60 * 1000
	dayMicros  = calendar.DayMicros
	switchTime = switchDay * dayMicros
)

// errJulian is why the value of a stored day, which is a February 29, is not returned.
func errJulian(stored int64) error {
	before, _ := calendar.Gregorian(stored - 1)
	return &unheld{fmt.Sprintf("%.4s-02-29: only the Julian calendar, which CarbonData has before 1582-10-15, has "+
		"this date", dateText(before))}
}

// gregorian returns a stored value as one in the Gregorian calendar. Lists are changed in place.
func gregorian(v any) (any, error) {
	switch x := v.(type) {
	case Days:
		day, ok := calendar.Gregorian(int64(x))
		if !ok {
			return nil, errJulian(int64(x))
		}
		return Days(day), nil
	case Micros:
		micros, ok := calendar.GregorianMicros(int64(x))
		if !ok {
			day, _ := calendar.FloorDiv(int64(x), dayMicros)
			return nil, errJulian(day)
		}
		return Micros(micros), nil
	case []any:
		for i := range x {
			var err error
			if x[i], err = gregorian(x[i]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// gregorianCells converts the first n cells of a vector if they are stored days or times. Errors: a
// *refusedValue.
func gregorianCells(v *batch.Vector, n int) error {
	switch v.Type {
	case schema.Date:
		days := batch.Raw[int32](v)[:n]
		for i, d := range days {
			if d >= switchDay || v.IsNull(i) {
				continue
			}
			day, ok := calendar.Gregorian(int64(d))
			if !ok {
				return &refusedValue{i, errJulian(int64(d))}
			}
			days[i] = int32(day)
		}
	case schema.Timestamp:
		times := batch.Raw[int64](v)[:n]
		for i, t := range times {
			if t >= switchTime || v.IsNull(i) {
				continue
			}
			micros, ok := calendar.GregorianMicros(t)
			if !ok {
				day, _ := calendar.FloorDiv(t, dayMicros)
				return &refusedValue{i, errJulian(day)}
			}
			times[i] = micros
		}
	}
	return nil
}

// storedCell returns the cell of a Gregorian day or time as a stored one, and whether it is exact.
// If it is not, the cell is the first after the days that CarbonData does not have. Cells of other
// types are as they were.
func storedCell(t schema.Type, cell []byte) (stored []byte, exact bool) {
	le := binary.LittleEndian
	switch t {
	case schema.Date:
		day, exact := calendar.Hybrid(int64(int32(le.Uint32(cell))))
		return le.AppendUint32(nil, uint32(int32(max(day, math.MinInt32)))), exact
	case schema.Timestamp:
		micros, exact := calendar.HybridMicros(int64(le.Uint64(cell)))
		return le.AppendUint64(nil, uint64(micros)), exact
	}
	return cell, true
}

// dateText returns the text of a Gregorian day.
func dateText(day int64) string { return time.Unix(day*dayMillis/1000, 0).UTC().Format(time.DateOnly) }

// checkDay refuses a Gregorian day that CarbonData does not have.
func checkDay(day int64, text string) error {
	switch {
	case day < firstDay || day > lastDay:
		return fmt.Errorf("%s: CarbonData has the dates from 0001-01-01 to 9999-12-31", text)
	case day >= switchDay-gapDays && day < switchDay:
		return fmt.Errorf("%s: CarbonData does not have this date: in its calendar 1582-10-15 follows 1582-10-04", text)
	}
	return nil
}

// checkDate returns a day as it is stored. It refuses dates that CarbonData does not have.
func checkDate(day int64) (stored int64, err error) {
	if err := checkDay(day, dateText(day)); err != nil {
		return 0, err
	}
	stored, _ = calendar.Hybrid(day)
	return stored, nil
}

// ErrMicroseconds is the error of a time with microseconds that are no milliseconds.
var ErrMicroseconds = errors.New("CarbonData stores milliseconds")

// checkTimestamp returns a time in milliseconds, as it is stored. It refuses dates that CarbonData
// does not have.
func checkTimestamp(micros int64) (stored int64, err error) {
	if micros%microsPerMilli != 0 {
		return 0, fmt.Errorf("a time of %d microseconds: %w", micros, ErrMicroseconds)
	}
	day, _ := calendar.FloorDiv(micros, dayMicros)
	if err := checkDay(day, time.UnixMicro(micros).UTC().Format(time.RFC3339Nano)); err != nil {
		return 0, err
	}
	stored, _ = calendar.HybridMicros(micros)
	return stored / microsPerMilli, nil
}
