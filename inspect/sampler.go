package inspect

import (
	"context"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
)

// The store's metrics are sampled while somebody looks at pages, and for a while after.
const (
	sampleEvery = 2 * time.Second
	sampleAfter = time.Minute // after the last page
	mostSamples = 150         // kept
)

// sampler keeps metrics over time.
type sampler struct {
	s *server

	mu    sync.Mutex
	list  []sample    // oldest first
	timer *time.Timer // nil: not running
	until time.Time
}

// sample contains the values of all series at one time: of a rate what has been counted so far.
type sample struct {
	at     time.Time
	values []float64
}

func newSampler(s *server) *sampler { return &sampler{s: s} }

// awake makes the sampler run for a while.
func (p *sampler) awake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = p.s.now().Add(sampleAfter)
	if p.timer == nil {
		p.timer = time.AfterFunc(sampleEvery, p.tick)
	}
}

// tick takes a sample and runs again later, unless nobody looks any more.
func (p *sampler) tick() {
	ctx, cancel := context.WithTimeout(context.Background(), maxRefresh)
	defer cancel()
	p.s.refresh(ctx) // the next page shows its error
	err := p.take()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || p.s.now().After(p.until) {
		p.timer = nil
		return
	}
	p.timer = time.AfterFunc(sampleEvery, p.tick)
}

// take adds a sample.
func (p *sampler) take() error {
	m, err := p.s.store.Metrics()
	if err != nil {
		return err
	}
	one := sample{at: p.s.now()}
	for _, d := range seriesList {
		one.values = append(one.values, d.value(&m))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, one)
	p.list = p.list[max(0, len(p.list)-mostSamples):]
	return nil
}

// seriesInfo describes one metric over time.
type seriesInfo struct {
	name, unit, meaning string
	rate                bool // the value counts up; the series has its change per second
	writer              bool // only a writer has it
	value               func(m *oribi.Metrics) float64
}

var seriesList = []seriesInfo{
	{name: "Rows written", unit: "per second",
		meaning: "Rows that committed write batches have changed.", rate: true, writer: true,
		value: func(m *oribi.Metrics) float64 { return float64(m.Commits.Rows) }},
	{name: "Rows read by key", unit: "per second", meaning: "Reads of one row by its primary key.", rate: true,
		value: func(m *oribi.Metrics) float64 { return float64(m.Reads.Gets + m.Reads.Keys) }},
	{name: "Bytes written by flushes and compactions", unit: "bytes per second",
		meaning: "New files; the log is not included.", rate: true, writer: true,
		value: func(m *oribi.Metrics) (sum float64) {
			for _, j := range m.Jobs {
				sum += float64(j.BytesWritten)
			}
			return sum
		}},
	{name: "Memory of unflushed rows and changes", unit: "bytes",
		meaning: "It grows with writes and falls with flushes.",
		value:   func(m *oribi.Metrics) float64 { return float64(m.Memory.Rows + m.Memory.Changes) }},
	{name: "Log", unit: "bytes", meaning: "What a restart would replay at most; flushes let the store remove log.",
		value: func(m *oribi.Metrics) float64 { return float64(m.Disk.Log) }},
	{name: "Files of rowsets", unit: "bytes", meaning: "Blocks that the metadata names.",
		value: func(m *oribi.Metrics) float64 { return float64(m.Disk.Live) }},
	{name: "Rowsets over a key", unit: "rowsets",
		meaning: "How many rowsets could have a key, on average: compactions lower it.",
		value:   func(m *oribi.Metrics) float64 { return m.ReadAmplification }},
}

// series is a metric over time as a page shows it.
type series struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit"`
	Meaning string    `json:"meaning"`
	Least   float64   `json:"least"`
	Most    float64   `json:"most"`
	Newest  float64   `json:"newest"`
	Values  []float64 `json:"values"` // at the times of the samples; of a rate, from the second on
}

// history contains the series and the times of their values.
type history struct {
	Times  []string `json:"times"` // RFC 3339, UTC
	Series []series `json:"series"`
}

// history returns the series, nil with less than two samples.
func (p *sampler) history() *history {
	p.mu.Lock()
	list := p.list
	p.mu.Unlock()
	if len(list) < 3 {
		return nil
	}
	h := &history{}
	for _, one := range list[1:] {
		h.Times = append(h.Times, one.at.UTC().Format("2006-01-02T15:04:05.0Z"))
	}
	for i, d := range seriesList {
		if d.writer && p.s.store.ReadOnly() {
			continue
		}
		c := series{Name: d.name, Unit: d.unit, Meaning: d.meaning}
		for k, one := range list[1:] {
			v := one.values[i]
			if before := list[k]; d.rate {
				v = max(0, v-before.values[i]) / max(one.at.Sub(before.at).Seconds(), 1e-3)
			}
			v = round(v, 2)
			if c.Values = append(c.Values, v); k == 0 {
				c.Least, c.Most = v, v
			}
			c.Least, c.Most, c.Newest = min(c.Least, v), max(c.Most, v), v
		}
		h.Series = append(h.Series, c)
	}
	return h
}
