// Package figures formats numbers for people: "1,234,567", "1.5 MiB".
package figures

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

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

// ParseSize parses a number of bytes: an integer and B, KB, MB, or GB, in powers of 1024.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "BKMG")
	scale := map[string]int64{"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}[text[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || scale == 0 {
		return 0, fmt.Errorf("%q is not a size: want an integer and B, KB, MB, or GB", text)
	}
	if int64(n) > math.MaxInt64/scale {
		return 0, fmt.Errorf("%s is too large", text)
	}
	return int64(n) * scale, nil
}
