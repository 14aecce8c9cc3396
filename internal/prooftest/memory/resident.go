package memory

import (
	"bytes"
	"fmt"
	"os"
)

// PeakResident returns the greatest resident memory of the process, in bytes; 0 on systems that do
// not report it.
func PeakResident() (n int64, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, nil
	}
	if _, line, ok := bytes.Cut(status, []byte("VmHWM:")); ok {
		_, err = fmt.Sscan(string(line), &n)
	}
	return n << 10, err
}
