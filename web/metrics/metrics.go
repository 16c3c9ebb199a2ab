// Package metrics counts what a server does, for Prometheus. No label has more values than the configuration names: none is a
// session's, an owner's or a path's own.
package metrics

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

// cellSeconds are the bounds of how long cells run, in seconds, httpSeconds those of answers.
var (
	cellSeconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	httpSeconds = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 30, 120}
)

// Metrics counts. Its methods may be called concurrently, and those of a nil Metrics do nothing.
type Metrics struct {
	registry   *prometheus.Registry
	cells      *prometheus.CounterVec
	cellTime   *prometheus.HistogramVec
	failures   *prometheus.CounterVec
	requests   *prometheus.CounterVec
	answerTime *prometheus.HistogramVec
}

// New returns metrics of a server of some version. What is counted of sessions by looking at them is so once Watch was called.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		cells: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cellblock_cells_total", Help: "Cells that have ended, by language and status; never_ran for those that no kernel got.",
		}, []string{"language", "status"}),
		cellTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cellblock_cell_seconds", Help: "How long cells ran, without their time in the queue.", Buckets: cellSeconds,
		}, []string{"language"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cellblock_cell_failures_total", Help: "Cells that never ran, by the kind of error.",
		}, []string{"kind"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cellblock_http_requests_total", Help: "Requests that were answered, by what they were for and status.",
		}, []string{"for", "code"}),
		answerTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cellblock_http_seconds", Help: "How long answers took, streams to their end.", Buckets: httpSeconds,
		}, []string{"for"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "cellblock_build_info", Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(m.cells, m.cellTime, m.failures, m.requests, m.answerTime, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// CellEnded counts a cell that has ended, or never will run.
func (m *Metrics) CellEnded(e *sessions.Execution) {
	if m == nil {
		return
	}
	info, language := e.Info(), e.Language()
	if info.Err != nil {
		m.cells.WithLabelValues(language, "never_ran").Inc()
		m.failures.WithLabelValues(fault.KindOf(info.Err).String()).Inc()
		return
	}
	m.cells.WithLabelValues(language, statusOf(info.Result)).Inc()
	m.cellTime.WithLabelValues(language).Observe(info.Duration.Seconds())
}

// statusOf is how a cell ended that ran: what stopped it says more than what its kernel answered to that.
func statusOf(r sessions.Result) string {
	switch {
	case r.TimedOut:
		return "timeout"
	case r.Cancelled:
		return "cancelled"
	case r.Interrupted():
		return "interrupted"
	case r.Restarted:
		return "restarted"
	case r.Stopped():
		return "stopped"
	}
	return string(r.Status)
}

// Answered counts an answer to a request for one of a few things: "mcp", "viewer".
func (m *Metrics) Answered(what string, status int, took time.Duration) {
	if m == nil {
		return
	}
	m.requests.WithLabelValues(what, strconv.Itoa(status)).Inc()
	m.answerTime.WithLabelValues(what).Observe(took.Seconds())
}

// Watch adds what is known of sessions by looking at them.
func (m *Metrics) Watch(manager *sessions.Manager) {
	if m != nil {
		m.registry.MustRegister(&watched{manager})
	}
}

// watched looks at sessions whenever it is asked.
type watched struct{ *sessions.Manager }

// usageTime bounds the look at what the database holds.
const usageTime = 5 * time.Second

var (
	sessionsDesc = prometheus.NewDesc("cellblock_sessions", "Sessions, by state.", []string{"state"}, nil)
	queuedDesc   = prometheus.NewDesc("cellblock_cells_waiting", "Cells that wait.", nil, nil)
	poolDesc     = prometheus.NewDesc("cellblock_pool_ready", "Kernels that are ready for new sessions, by language.", []string{"language"}, nil)
	poolSizeDesc = prometheus.NewDesc("cellblock_pool_size", "How many of each language should be ready.", nil, nil)
	lostDesc     = prometheus.NewDesc("cellblock_kernels_lost_total", "Kernels that ended under their sessions: culled, or died.", []string{"how"}, nil)
	keptDesc     = prometheus.NewDesc("cellblock_history_bytes", "What the history takes on the disk, database and files, in bytes: history.max_bytes bounds it.", nil, nil)
	keptCells    = prometheus.NewDesc("cellblock_history_cells", "Cells that are kept.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *watched) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sessionsDesc, queuedDesc, poolDesc, poolSizeDesc, lostDesc, keptDesc, keptCells} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (w *watched) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	stats := w.Stats()
	for _, state := range []sessions.State{sessions.Starting, sessions.Idle, sessions.Busy, sessions.Restarting, sessions.Died, sessions.Culled} {
		gauge(sessionsDesc, float64(stats.Sessions[state]), string(state))
	}
	gauge(queuedDesc, float64(stats.Queued))
	gauge(poolSizeDesc, float64(stats.Pool.Size))
	for language, n := range stats.Pool.Ready {
		gauge(poolDesc, float64(n), language)
	}
	for how, n := range map[string]int64{"culled": stats.Culls, "died": stats.Deaths} {
		to <- prometheus.MustNewConstMetric(lostDesc, prometheus.CounterValue, float64(n), how)
	}
	w.collectKept(gauge)
}

// collectKept tells what the database holds, if that answers.
func (w *watched) collectKept(gauge func(*prometheus.Desc, float64, ...string)) {
	if w.Config().Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), usageTime)
	defer cancel()
	usage, err := w.Usage(ctx)
	if err != nil {
		return // health tells
	}
	gauge(keptDesc, float64(usage.Disk))
	gauge(keptCells, float64(usage.Executions))
}
