package carbondata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// CarbonData's SDK reads and prints dates in the calendar of java.util.GregorianCalendar: Julian up
// to 1582-10-04, Gregorian from the next day on, 1582-10-15. Stored are the days that have passed
// since 1970-01-01. Everything outside of files has the proleptic Gregorian calendar, where a date
// before the switch is another number of days; values are converted so that the date stays.
//
//	date         stored    Gregorian
//	1582-10-15   -141427   -141427   the first day with the same number
//	1582-10-14   none      -141428   ten days that the SDK refuses
//	1582-10-05   none      -141437
//	1582-10-04   -141428   -141438
//	1500-03-01   -171595   -171604
//	1500-02-29   -171596   none      as each century that is not divisible by 400
//	1500-02-28   -171597   -171605
//	0001-01-01   -719164   -719162   the first date that the SDK takes
//
// Times have the same calendar, at midnight UTC. Inside of this package, up to the values and the
// vectors that a scan returns, and from where a Writer adds values on, days and times are as stored:
// filters, minima, and maxima compare these. Both orders are the same.
const (
	switchDay  = -141427 // 1582-10-15 in both calendars; file format: never change
	gapDays    = 10      // before it, which the SDK refuses
	firstDay   = -719162 // 0001-01-01, Gregorian
	lastDay    = 2932896 // 9999-12-31
	dayMillis  = 24 * 60 * 60 * 1000
	dayMicros  = dayMillis * microsPerMilli
	switchTime = switchDay * dayMicros
)

// Days from 0000-03-01, with which years begin here so that February 29 is the last day of one, to
// 1970-01-01.
const (
	julianEpoch    = 719470
	gregorianEpoch = 719468
	julianCycle    = 4*365 + 1           // days of 4 years
	gregorianCycle = 100*julianCycle - 3 // days of 400 years
	century        = 25*julianCycle - 1  // days of one without a leap day at its end
	leapDay        = 365                 // of a year, from 0
)

// floorDiv returns the quotient, rounded down, and the rest, which is not negative.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}

// centuryDays returns by how many days the stored number of a date in a year is less than the
// Gregorian one.
func centuryDays(year int64) int64 {
	centuries, _ := floorDiv(year, 100)
	cycles, _ := floorDiv(year, 400)
	return 2 - centuries + cycles
}

// gregorianDay returns the Gregorian day with the date of a stored one. It returns false if that
// calendar does not have the date, and then the day after it.
func gregorianDay(stored int64) (day int64, ok bool) {
	if stored >= switchDay {
		return stored, true
	}
	cycle, of := floorDiv(stored+julianEpoch, julianCycle)
	year := (of - of/(julianCycle-1)) / 365
	leap := of-365*year == leapDay
	year += 4 * cycle
	ok = !leap || (year+1)%100 != 0 || (year+1)%400 == 0
	return stored + centuryDays(year), ok
}

// storedDay returns the stored day with the date of a Gregorian one, false if there is none.
func storedDay(day int64) (stored int64, ok bool) {
	switch {
	case day >= switchDay:
		return day, true
	case day >= switchDay-gapDays:
		return switchDay, false
	}
	cycle, of := floorDiv(day+gregorianEpoch, gregorianCycle)
	year := (of - of/(julianCycle-1) + of/century - of/(gregorianCycle-1)) / 365
	return day - centuryDays(year+400*cycle), true
}

// gregorianMicros is gregorianDay for times in microseconds.
func gregorianMicros(stored int64) (micros int64, ok bool) {
	if stored >= switchTime {
		return stored, true
	}
	day, of := floorDiv(stored, dayMicros)
	day, ok = gregorianDay(day)
	return day*dayMicros + of, ok
}

// storedMicros is storedDay for times in microseconds.
func storedMicros(micros int64) (stored int64, ok bool) {
	if micros >= switchTime {
		return micros, true
	}
	day, of := floorDiv(micros, dayMicros)
	if day, ok = storedDay(day); !ok {
		return switchTime, false
	}
	if day < math.MinInt64/dayMicros {
		return math.MinInt64, true // less than all stored times
	}
	return day*dayMicros + of, true
}

// errJulian is why the value of a stored day, which is a February 29, is not returned.
func errJulian(stored int64) error {
	before, _ := gregorianDay(stored - 1)
	return &unheld{fmt.Sprintf("%.4s-02-29: only the Julian calendar, which CarbonData has before 1582-10-15, has this date", dateText(before))}
}

// gregorian returns a stored value as one in the Gregorian calendar. Lists are changed in place.
func gregorian(v any) (any, error) {
	switch x := v.(type) {
	case Days:
		day, ok := gregorianDay(int64(x))
		if !ok {
			return nil, errJulian(int64(x))
		}
		return Days(day), nil
	case Micros:
		micros, ok := gregorianMicros(int64(x))
		if !ok {
			day, _ := floorDiv(int64(x), dayMicros)
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
			day, ok := gregorianDay(int64(d))
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
			micros, ok := gregorianMicros(t)
			if !ok {
				day, _ := floorDiv(t, dayMicros)
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
		day, exact := storedDay(int64(int32(le.Uint32(cell))))
		return le.AppendUint32(nil, uint32(int32(max(day, math.MinInt32)))), exact
	case schema.Timestamp:
		micros, exact := storedMicros(int64(le.Uint64(cell)))
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
	stored, _ = storedDay(day)
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
	day, _ := floorDiv(micros, dayMicros)
	if err := checkDay(day, time.UnixMicro(micros).UTC().Format(time.RFC3339Nano)); err != nil {
		return 0, err
	}
	stored, _ = storedMicros(micros)
	return stored / microsPerMilli, nil
}
