// What the session uses, over time, while somebody looks.
import {onDesk} from './desk.js';
import {subscribe} from './live.js';

const width = 300, height = 80; // of a chart, in its own units
const span = 10 * 60 * 1000, least = 60 * 1000; // what it shows at most and at least, in milliseconds
const gap = 15 * 1000; // nobody looked for so long: no line leads over it

const bytes = (n) => {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${n >= 100 || i === 0 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
};

const percent = (cpus) => `${Math.round(cpus * 100)} %`; // 100 % is one

const shape = (name, attributes) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};

// shownOf is how long a time a chart shows: as long as something is known.
const shownOf = (values) => Math.min(span, Math.max(least, values.at(-1)[0] - values[0][0]));

// draw draws values, [when, how much], under a ceiling, with a line at the limit where that is to be seen.
function draw(chart, values, ceiling, limit) {
  const end = values.at(-1)[0];
  const long = shownOf(values);
  const x = (at) => width - (end - at) / long * width;
  const y = (value) => height - Math.min(1, value / ceiling) * (height - 4);
  chart.setAttribute('viewBox', `0 0 ${width} ${height}`);
  chart.setAttribute('preserveAspectRatio', 'none');
  const runs = [];
  values.forEach(([at, value], i) => {
    if (i === 0 || at - values[i - 1][0] > gap) runs.push([]);
    runs.at(-1).push(`${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  });
  const drawn = runs.flatMap((points) => {
    const [first, last] = [points[0].split(',')[0], points.at(-1).split(',')[0]];
    return [shape('polygon', {class: 'area', points: `${first},${height} ${points.join(' ')} ${last},${height}`}),
      shape('polyline', {class: 'line', points: points.join(' ')})];
  });
  if (limit && limit <= ceiling) drawn.push(shape('line', {class: 'limit', x1: 0, x2: width, y1: y(limit), y2: y(limit)}));
  chart.replaceChildren(...drawn);
}

class Resources {
  constructor(id) {
    this.topic = `samples:${id}`;
    this.samples = [];
    this.ended = false; // there is no kernel that uses anything
    this.box = document.getElementById('panel-resources');
    onDesk(({state}) => {
      const ended = ['died', 'culled', 'closed'].includes(state);
      if (ended === this.ended) return;
      this.ended = ended;
      this.draw();
    });
  }

  show() {
    this.end = subscribe(this.topic, '', (event, data) => {
      if (event !== 'samples') return;
      if (data.first) this.samples = [];
      this.samples.push(...data.samples);
      this.draw();
    });
  }

  hide() { this.end(); }

  stale() {}

  draw() {
    const last = this.ended ? undefined : this.samples.at(-1);
    const none = document.getElementById('no-samples');
    none.hidden = Boolean(last);
    none.textContent = this.ended ? 'The kernel has ended.' : 'Nothing is known yet.';
    for (const shown of this.box.querySelectorAll('figure, .axis')) shown.hidden = !last;
    if (!last) return;
    this.samples = this.samples.filter((s) => last.at - s.at <= span);
    const most = Math.max(...this.samples.map((s) => s.memory));
    const memory = document.getElementById('memory-chart'), cpu = document.getElementById('cpu-chart');
    draw(memory, this.samples.map((s) => [s.at, s.memory]), last.limit && most > last.limit / 4 ? last.limit * 1.05 : most * 1.5 || 1, last.limit);
    const minutes = Math.round(shownOf(this.samples.map((s) => [s.at])) / 60000);
    document.getElementById('sample-from').textContent = `${minutes} min ago`;
    const busiest = Math.max(...this.samples.map((s) => s.cpu));
    draw(cpu, this.samples.map((s) => [s.at, s.cpu]), Math.max(1, Math.ceil(busiest)), 0);
    const used = last.limit ? `${bytes(last.memory)} of ${bytes(last.limit)}` : bytes(last.memory);
    document.getElementById('memory-now').textContent = used;
    document.getElementById('cpu-now').textContent = percent(last.cpu);
    memory.setAttribute('aria-label', `Memory over the last minutes: now ${used}, at most ${bytes(most)}`);
    cpu.setAttribute('aria-label', `CPU over the last minutes: now ${percent(last.cpu)}, at most ${percent(busiest)}`);
  }
}

export const resources = (id) => new Resources(id);
