package kernels

import (
	"math"
	"strconv"
)

// threadVariables are where programs look for how many threads or processes to start, which would count the host's cores: numeric
// libraries, nproc, Python itself from 3.13 on, and joblib, which scikit-learn works with.
var threadVariables = []string{
	"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS", "PYTHON_CPU_COUNT", "LOKY_MAX_CPU_COUNT",
}

// ThreadEnv is the environment that tells a kernel's programs how many cores they have, rounded up. It is empty where there is no limit.
func ThreadEnv(cpus float64) map[string]string {
	env := map[string]string{}
	for _, name := range threadVariables {
		if cpus > 0 {
			env[name] = strconv.Itoa(max(1, int(math.Ceil(cpus))))
		}
	}
	return env
}
