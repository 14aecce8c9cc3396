// Package figures formats numbers for people: "1,234,567", "1.5 MiB".
package figures

import "strconv"

// Thousands formats n with commas.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Size formats a number of bytes in a suitable binary unit: "17 B", "4.0 KiB", "1.5 GiB".
func Size(n int64) string {
	if n > -1<<10 && n < 1<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, unit := float64(n), 0
	for ; (f >= 1023.95 || f <= -1023.95) && unit < len(units); unit++ {
		f /= 1 << 10
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + units[unit-1:unit] + "iB"
}

const units = "KMGTPE"
