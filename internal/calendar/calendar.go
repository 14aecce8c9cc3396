// Package calendar converts between the proleptic Gregorian calendar and the hybrid calendar of
// java.util.GregorianCalendar: Julian up to 1582-10-04, Gregorian from the next day on, 1582-10-15.
// Days and times count from 1970-01-01 in both; a conversion keeps the date.
//
//	date         hybrid    Gregorian
//	1582-10-15   -141427   -141427   the first day with the same number
//	1582-10-14   none      -141428   ten days that the hybrid calendar does not have
//	1582-10-05   none      -141437
//	1582-10-04   -141428   -141438
//	1500-03-01   -171595   -171604
//	1500-02-29   -171596   none      as each century that is not divisible by 400
//	1500-02-28   -171597   -171605
//	0001-01-01   -719164   -719162
//
// Both orders are the same.
package calendar

import "math"

const (
	Switch    = -141427 // 1582-10-15, the first day with the same number
	Gap       = 10      // days before it that the hybrid calendar does not have
	DayMicros = 24 * 60 * 60 * 1000 * 1000

	switchTime = Switch * DayMicros
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

// FloorDiv returns the quotient, rounded down, and the rest, which is not negative.
func FloorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}

// centuryDays returns by how many days the hybrid number of a date in a year is less than the
// Gregorian one.
func centuryDays(year int64) int64 {
	centuries, _ := FloorDiv(year, 100)
	cycles, _ := FloorDiv(year, 400)
	return 2 - centuries + cycles
}

// Gregorian returns the Gregorian day with the date of a hybrid one. It returns false if the
// Gregorian calendar does not have the date, a February 29, and then the day after it.
func Gregorian(hybrid int64) (day int64, ok bool) {
	if hybrid >= Switch {
		return hybrid, true
	}
	cycle, of := FloorDiv(hybrid+julianEpoch, julianCycle)
	year := (of - of/(julianCycle-1)) / 365
	leap := of-365*year == leapDay
	year += 4 * cycle
	ok = !leap || (year+1)%100 != 0 || (year+1)%400 == 0
	return hybrid + centuryDays(year), ok
}

// Hybrid returns the hybrid day with the date of a Gregorian one. It returns false if the hybrid
// calendar does not have the date, and then the first day after it.
func Hybrid(day int64) (hybrid int64, ok bool) {
	switch {
	case day >= Switch:
		return day, true
	case day >= Switch-Gap:
		return Switch, false
	}
	cycle, of := FloorDiv(day+gregorianEpoch, gregorianCycle)
	year := (of - of/(julianCycle-1) + of/century - of/(gregorianCycle-1)) / 365
	return day - centuryDays(year+400*cycle), true
}

// GregorianMicros is Gregorian for times in microseconds.
func GregorianMicros(hybrid int64) (micros int64, ok bool) {
	if hybrid >= switchTime {
		return hybrid, true
	}
	day, of := FloorDiv(hybrid, DayMicros)
	day, ok = Gregorian(day)
	return day*DayMicros + of, ok
}

// HybridMicros is Hybrid for times in microseconds. Times too early for 64 bits become the earliest.
func HybridMicros(micros int64) (hybrid int64, ok bool) {
	if micros >= switchTime {
		return micros, true
	}
	day, of := FloorDiv(micros, DayMicros)
	if day, ok = Hybrid(day); !ok {
		return switchTime, false
	}
	if day < math.MinInt64/DayMicros {
		return math.MinInt64, true // before all others
	}
	return day*DayMicros + of, true
}
