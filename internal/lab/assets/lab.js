// What every page of the lab has: the menu of narrow windows, and how the program is asked.

const menu = document.querySelector('nav .menu'), places = document.getElementById('places');
menu?.addEventListener('click', () => menu.setAttribute('aria-expanded', places.classList.toggle('open')));

// refusal is what went wrong and what to do.
export const refusal = answer => [answer.error, answer.hint].filter(Boolean).join(': ');

// reach fetches. Where nobody answers fetch throws a TypeError, as mistakes of scripts are, which nobody should take for that.
export const reach = (path, options) => fetch(path, options).catch(e => { throw e instanceof TypeError ? new Error('the lab does not answer: start warpline lab again') : e; });

// answered is the JSON of an answer; a refusal is thrown.
export async function answered(r) {
  const answer = await r.json();
  if (!r.ok) throw new Error(refusal(answer));
  return answer;
}

// ask is both.
export const ask = async (path, options) => answered(await reach(path, options));

// post asks with JSON.
export const post = (path, body = {}) => ask(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)});
